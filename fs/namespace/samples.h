/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as files, which have the same inodes under samples/, columns/ and by/.
 * What a name needs is in the metadata; what a size needs may be in the
 * allocation table. Private to the namespace.
 */
#ifndef FS_NAMESPACE_SAMPLES_H
#define FS_NAMESPACE_SAMPLES_H

#include "fs/namespace/object.h"

/* What follows the stem or number in a file's name. An image whose metadata
   make no sense has no extension: it is listed, and reading it fails. */
const char *ns_value_extension(const struct field *f, const uint8_t *record);

/* The metadata of a sample, the caller's even if *r says that it failed. */
uint8_t *ns_value_record(struct dataset *ds, uint64_t sample, int *r);

/* Fills an entry from the sample's record. */
int ns_value_entry(struct ns *ns, const struct ns_object *object,
		   const uint8_t *record, struct ns_entry *out);

/* Passes on a value's name, and its size where that is wanted and known;
   `record` may be NULL. */
bool ns_value_emit(struct ns *ns, const struct ns_listing *listing,
		   const struct ns_name *name, const uint8_t *record);

extern const struct ns_row ns_sample_row, ns_value_row;

int ns_samples_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out);
int ns_samples_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing);

#endif

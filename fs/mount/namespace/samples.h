/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as files, with the same inodes under samples/, columns/ and by/. A
 * name needs only the metadata; a size may need the allocation table.
 */
#ifndef FS_MOUNT_NAMESPACE_SAMPLES_H
#define FS_MOUNT_NAMESPACE_SAMPLES_H

#include "fs/mount/namespace/object.h"

/* The extension of a value's file. An image with damaged metadata has no
   extension; listings contain it, and reading it fails. */
const char *ns_value_extension(const struct field *f, const uint8_t *record);

/* Reads the metadata of a sample. The caller frees it, also if *r is an
   error. */
uint8_t *ns_value_record(struct dataset *ds, uint64_t sample, int *r);

/* Fills an entry from the sample's record. */
int ns_value_entry(struct ns *ns, const struct ns_object *object,
		   const uint8_t *record, struct ns_entry *out);

/* Emits a value's name, and its size if the caller requests it and the record
   contains it; `record` may be NULL. */
bool ns_value_emit(struct ns *ns, const struct ns_listing *listing,
		   const struct ns_name *name, const uint8_t *record);

extern const struct ns_row ns_sample_row, ns_value_row;

int ns_samples_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out);
int ns_samples_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing);

#endif

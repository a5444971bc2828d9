/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of SPECs, and of their epochs, which are the streams. The first
 * lookup gives the number, per dataset. Numbers are never reused and end at
 * NS_PARTS_MAX, which bounds the memory that lookups can take. Thread-safe.
 * Private to the namespace.
 */
#ifndef FS_NAMESPACE_STREAMS_H
#define FS_NAMESPACE_STREAMS_H

/* If memory runs out, uthash leaves the element out instead of exiting. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "fs/namespace/object.h"

/* Both structs live as long as the namespace and do not change. */
struct ns_spec {
	UT_hash_handle hh;
	struct spec spec;
	uint32_t number;
	char text[SPEC_TEXT_MAX]; /* canonical */
};

struct ns_epoch_key {
	uint64_t spec;
	uint64_t epoch;
};

struct ns_epoch {
	UT_hash_handle hh;
	struct ns_epoch_key key;
	const struct ns_spec *spec;
	struct stream *stream;
	uint32_t number;
};

/* Finds the SPEC that a text spells, in any spelling, for the dataset of an
   object. -EINVAL: no SPEC, a logged line says why; -ENFILE: too many SPECs. */
int ns_spec_named(struct ns *ns, const struct ns_object *of, const char *text,
		  const struct ns_spec **out);
int ns_epoch_named(struct ns *ns, const struct ns_object *of,
		   const struct ns_spec *spec, uint64_t epoch,
		   const struct ns_epoch **out);

/* The one with the number `part`; NULL: the number was never given. */
const struct ns_spec *ns_spec_of(struct ns *ns, const struct ns_object *object);
const struct ns_epoch *ns_epoch_of(struct ns *ns,
				   const struct ns_object *object);

/* Makes the streams of a dataset, whose root is `top`: reads the subsets, and
   gives number 0 to the default spec. -EINVAL: default_spec does not fit
   this dataset, or a subset cannot be read; the reason was logged. On failure,
   ns_streams_close() frees what was made. */
int ns_streams_open(struct ns *ns, const struct ns_object *top,
		    const struct ns_options *options);
/* Takes NULL. */
void ns_streams_close(struct ns_streams *streams);

#endif

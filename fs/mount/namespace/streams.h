/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that readers choose: sampling specs, their epochs (the streams),
 * and pieces of epochs. The first lookup of a name assigns a number, which no
 * other name gets in the life of the namespace. 2^44 numbers last for decades
 * at ten thousand new names a second.
 *
 * The namespace stores at most NS_NAMES_MAX names, or all names in use if there
 * are more. To make room, it drops the least recently used name of the user
 * with the most unused names. The number of a dropped name leads to -ESTALE,
 * and the kernel then looks its path up again. Thread-safe.
 */
#ifndef FS_MOUNT_NAMESPACE_STREAMS_H
#define FS_MOUNT_NAMESPACE_STREAMS_H

#include "fs/mount/namespace/object.h"

enum {
	/* A name takes 500 bytes on average and 1000 at most. */
	NS_NAMES_MAX = 16384,
	/* Batches of an epoch that share the number of their piece. */
	NS_PIECE_BITS = 10,
	NS_PIECE = 1 << NS_PIECE_BITS,
};

/* A sampling spec, an epoch or a piece. Does not change. */
struct ns_named {
	struct ns_names *names;
	struct ns_named *parent; /* a piece's epoch, an epoch's spec, or NULL */
	uint64_t id;
	uint32_t dataset;
	uint64_t number; /* of the epoch, or of the piece's first batch */
	const struct spec *spec; /* also of epochs and pieces */
	const char *text;	 /* of a spec: the canonical spelling */
	struct stream *stream;	 /* of epochs and pieces */
};

/*
 * Each finds a name or creates it on behalf of a user, and returns it with a
 * reference. -EINVAL: the text is not a valid sampling spec for the dataset of
 * `of`; the reason is logged. -ENFILE: all numbers are in use.
 */
int ns_spec_named(struct ns *ns, const struct ns_object *of, const char *text,
		  uid_t user, struct ns_named **out);
int ns_epoch_named(struct ns *ns, struct ns_named *spec, uint64_t epoch,
		   uid_t user, struct ns_named **out);
/* Returns the piece that contains batch `number`. */
int ns_piece_named(struct ns *ns, struct ns_named *epoch, uint64_t number,
		   uid_t user, struct ns_named **out);

/* Returns the name of an object, with a reference. NULL: it was dropped. */
struct ns_named *ns_named_get(struct ns *ns, const struct ns_object *object);
/* Drops a reference and clears the caller's pointer. Takes NULL. */
void ns_named_put(struct ns_named **named);

/* Return the object of a spec or an epoch, and the object of a batch of a
   piece. */
struct ns_object ns_named_object(const struct ns_named *named,
				 enum ns_kind kind);
struct ns_object ns_batch_object(const struct ns_named *piece, uint64_t number);
/* Returns the number in its epoch of the batch with this object. */
uint64_t ns_batch_number(const struct ns_named *piece,
			 const struct ns_object *object);

int ns_names_open(struct ns *ns);
/* The caller has put all names. Takes NULL. */
void ns_names_close(struct ns_names *names);

/* Reads the subsets of a dataset, whose root is `top`, and names its default
   sampling spec. -EINVAL: default_spec does not fit this dataset, or a subset
   cannot be read; the reason is logged. After a failure, ns_streams_close()
   frees the rest. */
int ns_streams_open(struct ns *ns, const struct ns_object *top,
		    const struct ns_options *options);
void ns_streams_close(struct ns_tree *tree);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points of JPEGs by sample. The first crop of an image records them
 * while it is decoded, and later crops, in the same epoch or in later ones,
 * skip what they do not need (loader/image/jpeg/entry_record.h). The record of
 * a JPEG with an index keeps the index.
 *
 * The memory grows up to a limit. If it is full, the store adds no records, and
 * other images are decoded without one; it evicts nothing. Any number of
 * threads may call entry_store_get(). It takes a lock only to grow.
 */
#ifndef LOADER_IMAGE_JPEG_ENTRY_STORE_H
#define LOADER_IMAGE_JPEG_ENTRY_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct baseline_image;
struct entry_record;
struct entry_store;

struct entry_store_options {
	uint64_t size; /* bytes, at most */
	/* Takes bytes of a limit of the caller's, until the store is closed.
	   Returns false if there are too few; the store then stays as it is.
	   One thread at a time. NULL: there is no other limit. */
	bool (*take)(void *arg, uint64_t bytes);
	void *arg;
};

struct entry_store_stats {
	uint64_t size;	  /* bytes, at most */
	uint64_t used;	  /* bytes of the records, and of what finds them */
	uint64_t records; /* images */
	uint64_t hits;	  /* entry_store_get() that returned known entries */
};

/* Returns -ENOMEM. */
int entry_store_open(const struct entry_store_options *options,
		     struct entry_store **out);
/* Takes NULL. */
void entry_store_close(struct entry_store *s);

/*
 * Returns the record of a sample's image, and makes it on first use. NULL: no
 * room, the image cannot have one or is small, or the record is of another
 * image. Records stay in place until the store is closed.
 */
struct entry_record *entry_store_get(struct entry_store *s, uint32_t field,
				     uint64_t id,
				     const struct baseline_image *image);

/* Reports zeros for NULL. */
void entry_store_stats(const struct entry_store *s,
		       struct entry_store_stats *out);

#endif

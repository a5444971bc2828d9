/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of values by sample number, in memory of a fixed size.
 *
 * A stored value stays in place, unchanged, until the store is closed. Lookups
 * take no lock, and their result needs no release. The store evicts no value:
 * because an epoch needs every sample once in a new order, all sets of equally
 * many values have the same number of hits.
 *
 * The size includes the index. The kernel allocates pages when the store writes
 * to them.
 *
 * Any number of threads may call all functions but open and close. If two
 * threads make the same value, the store keeps the first one.
 */
#ifndef LOADER_UTIL_VALUE_STORE_H
#define LOADER_UTIL_VALUE_STORE_H

#include <stdint.h>

enum {
	VALUE_STORE_SIZE_MIN = 64 << 10,
	/* Alignment of the memory from value_store_take(). */
	VALUE_STORE_ALIGN = 16,
};

enum value_store_found {
	VALUE_STORE_NOTHING,
	VALUE_STORE_VALUE,
	VALUE_STORE_REFUSED,
};

struct value_store;

struct value_store_stats {
	uint64_t size;	 /* bytes, as given to value_store_open() */
	uint64_t used;	 /* used bytes, with the index */
	uint64_t values; /* number of stored values */
	uint64_t hits;	 /* successful lookups */
};

/* Opens a store of `size` bytes, at least VALUE_STORE_SIZE_MIN. Returns -ENOMEM
   if there is no address space. */
int value_store_open(uint64_t size, struct value_store **out);
/* Takes NULL. */
void value_store_close(struct value_store *s);

/* Looks up a sample. If the store has its value, sets *out. */
enum value_store_found value_store_get(struct value_store *s, uint64_t id,
				       const void **out);

/*
 * Allocates memory for a sample's value, or returns NULL if there is no room.
 * Pass the memory to value_store_put() or value_store_give().
 */
void *value_store_take(struct value_store *s, uint64_t id, uint64_t size);

/*
 * Publishes a value, so that value_store_get() finds it. Returns -EEXIST if
 * another thread has published the value, or -ENOSPC if the index has no room.
 * In both cases the call releases the memory.
 */
int value_store_put(struct value_store *s, void *value);

/*
 * Releases memory from value_store_take(). The store cannot reuse it if another
 * thread has taken memory after it.
 */
void value_store_give(struct value_store *s, void *value);

/*
 * Records that caching the sample is useless, so that no thread tries again.
 */
void value_store_refuse(struct value_store *s, uint64_t id);

void value_store_stats(const struct value_store *s,
		       struct value_store_stats *out);

#endif

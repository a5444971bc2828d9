/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of values by sample number, in memory of a fixed size. It serves
 * values that are made once and needed again.
 *
 * A stored value stays in place, unchanged, until the store is closed. Lookups
 * take no lock, and their result is never released. Nothing is evicted: with
 * every sample needed once per epoch in a new order, any set of values of a
 * size has the same number of hits.
 *
 * The size includes the index. The system provides memory as it is filled.
 *
 * Any number of threads may call all functions but open and close. If two
 * threads make the same value, the first one is kept.
 */
#ifndef LOADER_PIPELINE_VALUE_STORE_H
#define LOADER_PIPELINE_VALUE_STORE_H

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

/* Opens a store of at least VALUE_STORE_SIZE_MIN bytes. -ENOMEM: no address
 * space. */
int value_store_open(uint64_t size, struct value_store **out);
/* Takes NULL. */
void value_store_close(struct value_store *s);

/* Looks up a sample. *out becomes its value, or stays as it is. */
enum value_store_found value_store_get(struct value_store *s, uint64_t id,
				       const void **out);

/*
 * Allocates memory for a sample's value; NULL: there is no room. Pass it to
 * value_store_put() or value_store_give() next.
 */
void *value_store_take(struct value_store *s, uint64_t id, uint64_t size);

/*
 * Publishes a value: value_store_get() finds it from now on. -EEXIST: another
 * thread published the value first. -ENOSPC: the index has no room. In both
 * cases the memory is released.
 */
int value_store_put(struct value_store *s, void *value);

/*
 * Releases memory from value_store_take(). Memory that another thread took
 * after it keeps it from being reused.
 */
void value_store_give(struct value_store *s, void *value);

/*
 * Records that the sample has no value worth keeping, so that no thread tries
 * again.
 */
void value_store_refuse(struct value_store *s, uint64_t id);

void value_store_stats(const struct value_store *s,
		       struct value_store_stats *out);

#endif

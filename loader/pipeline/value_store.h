/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of values by sample number, in memory of a fixed size. It serves
 * values that are made once and needed again.
 *
 * A stored value stays in place, unchanged, until the stash is closed. Lookups
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
	STASH_SIZE_MIN = 64 << 10,
	/* Alignment of the memory from stash_take(). */
	STASH_ALIGN = 16,
};

enum stash_found {
	STASH_NOTHING,
	STASH_VALUE,
	STASH_REFUSED,
};

struct stash;

struct stash_stats {
	uint64_t size;	 /* bytes, as given to stash_open() */
	uint64_t used;	 /* used bytes, with the index */
	uint64_t values; /* number of stored values */
	uint64_t hits;	 /* successful lookups */
};

/* Opens a stash of at least STASH_SIZE_MIN bytes. -ENOMEM: no address space. */
int stash_open(uint64_t size, struct stash **out);
/* Takes NULL. */
void stash_close(struct stash *s);

/* Looks up a sample. *out becomes its value, or stays as it is. */
enum stash_found stash_get(struct stash *s, uint64_t id, const void **out);

/*
 * Allocates memory for a sample's value; NULL: there is no room. Pass it to
 * stash_put() or stash_give() next.
 */
void *stash_take(struct stash *s, uint64_t id, uint64_t size);

/*
 * Publishes a value: stash_get() finds it from now on. -EEXIST: another thread
 * published the value first. -ENOSPC: the index has no room. In both cases the
 * memory is released.
 */
int stash_put(struct stash *s, void *value);

/*
 * Releases memory from stash_take(). Memory that another thread took after it
 * keeps it from being reused.
 */
void stash_give(struct stash *s, void *value);

/*
 * Records that the sample has no value worth keeping, so that no thread tries
 * again.
 */
void stash_refuse(struct stash *s, uint64_t id);

void stash_stats(const struct stash *s, struct stash_stats *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that were made once and are wanted again, by the number of a sample,
 * in memory of a size that is given once.
 *
 * What was put stays where it is, unchanged, until the stash is closed: looking
 * up takes no lock, and what it finds needs no giving back. Nothing is evicted.
 * Who wants every sample once per epoch, in ever new orders, finds as many in
 * any set of a size as in any other; to change the set is only work.
 *
 * The size is that of all memory, the index too. Memory is taken from the
 * system as it is filled.
 *
 * All but open and close may be called by any number of threads. If two make
 * one value, that of the first is kept.
 */
#ifndef LOADER_PIPELINE_VALUE_STORE_H
#define LOADER_PIPELINE_VALUE_STORE_H

#include <stdint.h>

enum {
	STASH_SIZE_MIN = 64 << 10,
	/* Of the memory that stash_take() gives. */
	STASH_ALIGN = 16,
};

enum stash_found {
	STASH_NOTHING,
	STASH_VALUE,
	STASH_REFUSED,
};

struct stash;

struct stash_stats {
	uint64_t size;	 /* bytes, as it was opened */
	uint64_t used;	 /* of them, with the index */
	uint64_t values; /* that are kept */
	uint64_t hits;	 /* how often one was found */
};

/* Of STASH_SIZE_MIN at least. -ENOMEM: not even addresses. */
int stash_open(uint64_t size, struct stash **out);
/* Takes NULL. */
void stash_close(struct stash *s);

/* What there is of a sample: *out is a value, or left alone. */
enum stash_found stash_get(struct stash *s, uint64_t id, const void **out);

/*
 * Memory for a sample's value; NULL: there is no room for it. It is passed to
 * stash_put() or stash_give() next.
 */
void *stash_take(struct stash *s, uint64_t id, uint64_t size);

/*
 * From now on stash_get() finds it. -EEXIST: another thread's was put first;
 * -ENOSPC: the index has no room; then the memory was given back.
 */
int stash_put(struct stash *s, void *value);

/* Gives back what was taken; of no use if more was taken after it. */
void stash_give(struct stash *s, void *value);

/* The sample has no value worth keeping: nobody needs to try again. */
void stash_refuse(struct stash *s, uint64_t id);

void stash_stats(const struct stash *s, struct stash_stats *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recycled memory for whole batch files. A piece is a memfd of huge pages that
 * another process may map for reading: it is sealed, so that nobody can shrink
 * it under a reader, and that only the mapping made here can write. Getting
 * fresh pages from the kernel costs more than filling them with a batch, so a
 * piece that was given back is used again, the last one first: its bytes are
 * the likeliest to be in the processor's cache.
 *
 * Thread-safe. pool.lock may follow engine.lock, nothing follows it; it is not
 * held while memory is made or freed.
 */
#ifndef FS_ENGINE_POOL_H
#define FS_ENGINE_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { POOL_ALIGN = 2 << 20 };

struct pool;

struct piece {
	struct piece *prev, *next; /* the pool's own */
	uint8_t *bytes;		   /* aligned to POOL_ALIGN */
	uint64_t capacity;	   /* a multiple of it */
	uint64_t id;		   /* no other piece of the pool ever has it */
	int fd;		/* sealed; -1 where there is no such memory */
	bool collapsed; /* of huge pages */
};

/* At most `limit` bytes, used or not; more only where a caller insists. */
int pool_open(uint64_t limit, struct pool **out);
/* All pieces are given back before. Takes NULL. */
void pool_close(struct pool *pool);

/*
 * A piece of at least `size` bytes, at most twice that in huge pages.
 * What it holds is undefined. -ENOSPC: over the limit, unless `insist`;
 * -ENOMEM.
 */
int pool_take(struct pool *pool, uint64_t size, bool insist,
	      struct piece **out);
/* Drops the caller's pointer; takes NULL. */
void pool_give(struct pool *pool, struct piece **piece);

/* As pool_give(), for memory that somebody else may still read: it is left to
   them, and never used again. */
void pool_drop(struct pool *pool, struct piece **piece);

/* What is unused and above a lower limit is freed at once. */
void pool_set_limit(struct pool *pool, uint64_t limit);
/* Frees all that is unused. */
void pool_tidy(struct pool *pool);
/* Whether the pool holds more than its limit. */
bool pool_is_over(struct pool *pool);

struct pool_stats {
	uint64_t pieces;    /* there are, used or not */
	uint64_t bytes;	    /* of these */
	uint64_t unused;    /* pieces */
	uint64_t collapsed; /* pieces of huge pages */
	uint64_t made;	    /* pieces since the pool was opened */
};

void pool_stats(struct pool *pool, struct pool_stats *out);

#endif

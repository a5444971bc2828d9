/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recycled memory for whole batch files. A piece is a memfd of huge pages that
 * another process may map for reading. It is sealed: no process can shrink it
 * under a reader, and only the mapping made here can write.
 *
 * Fresh pages from the kernel cost more than filling them with a batch. So a
 * free piece is used again, the most recent first: its bytes are the likeliest
 * to be in the processor's cache.
 *
 * Thread-safe. pool.lock may be taken under engine.lock, and no lock is taken
 * under it. It is not held while memory is allocated or freed.
 */
#ifndef FS_ENGINE_POOL_H
#define FS_ENGINE_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { POOL_ALIGN = 2 << 20 };

struct pool;

struct piece {
	struct piece *prev, *next; /* links of the pool */
	uint8_t *bytes;		   /* aligned to POOL_ALIGN */
	uint64_t capacity;	   /* a multiple of POOL_ALIGN */
	uint64_t id;		   /* unique in the pool, never used again */
	int fd;			   /* sealed; -1 if the memory is private */
	bool collapsed;		   /* of huge pages */
};

/* At most `limit` bytes, used or not; more only if a caller insists. */
int pool_open(uint64_t limit, struct pool **out);
/* The caller has given all pieces back. Takes NULL. */
void pool_close(struct pool *pool);

/*
 * Gets a piece of at least `size` bytes, and at most twice that in huge pages.
 * Its contents are undefined. -ENOSPC: over the limit, and not `insist`.
 * -ENOMEM.
 */
int pool_take(struct pool *pool, uint64_t size, bool insist,
	      struct piece **out);
/* Gives a piece back and clears the caller's pointer; takes NULL. */
void pool_give(struct pool *pool, struct piece **piece);

/* Like pool_give(), for memory that another process may still read: it is left
   to that process and never used again. */
void pool_drop(struct pool *pool, struct piece **piece);

/* Frees unused pieces above a lower limit at once. */
void pool_set_limit(struct pool *pool, uint64_t limit);
/* Frees all unused pieces. */
void pool_tidy(struct pool *pool);
/* Whether the pool holds more than its limit. */
bool pool_is_over(struct pool *pool);

struct pool_stats {
	uint64_t pieces;    /* all pieces, used or not */
	uint64_t bytes;	    /* all that the pieces have */
	uint64_t unused;    /* pieces */
	uint64_t collapsed; /* pieces of huge pages */
	uint64_t made;	    /* pieces since the pool was opened */
};

void pool_stats(struct pool *pool, struct pool_stats *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recycled memory for whole batch files. A piece is a memfd of huge pages that
 * another process may map for reading. It is sealed: no process can shrink it
 * under a reader, and only the mapping made here can write.
 *
 * Fresh pages from the kernel cost more than filling them with a batch.
 * Therefore the pool recycles free pieces, the most recent first, because its
 * bytes are most likely in the CPU cache.
 *
 * A process that got a descriptor from pool_share() may keep its mapping
 * without a time limit, and sees later contents of the piece. Therefore a
 * shared piece is recycled only for batches that the same users may read, until
 * no other process has it open or mapped. A write lease (fcntl(2), F_SETLEASE)
 * tests this: the kernel grants it only if no other process has the file open.
 *
 * Thread-safe. pool.lock may be taken under slots.lock, and budget.lock under
 * it. It is not held while memory is allocated or freed.
 */
#ifndef FS_DATA_ENGINE_POOL_H
#define FS_DATA_ENGINE_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct budget;

enum { POOL_ALIGN = 2 << 20 };

struct pool;

/* The users who may read a dataset. Equal structs mean the same users. */
struct pool_readers {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

enum { PIECE_HOLDERS = 4 };

struct piece {
	struct piece *prev, *next;   /* links of the pool */
	uint8_t *bytes;		     /* aligned to POOL_ALIGN */
	uint64_t capacity;	     /* a multiple of POOL_ALIGN */
	uint64_t id;		     /* unique in the pool, never used again */
	int fd;			     /* sealed; -1 if the memory is private */
	bool collapsed;		     /* of huge pages */
	struct pool_readers readers; /* of its batch */
	/* The users whose processes may have it mapped. Guarded by
	   pool.lock. */
	uid_t holders[PIECE_HOLDERS];
	unsigned num_holders;
	bool is_pinned; /* holders are charged for it, while it is unused */
};

struct pool_options {
	uint64_t limit; /* bytes of all pieces but abandoned ones */
	uint64_t keep;	/* beyond this, the pool frees unused pieces that no
			   other process has */
	struct budget *budget; /* charged for all pieces; NULL: none */
};

int pool_open(const struct pool_options *options, struct pool **out);
/* The caller has released all pieces. Takes NULL. */
void pool_close(struct pool *pool);

/*
 * Gets a piece of at least `size` bytes, and at most twice that in huge pages,
 * for a batch that these users may read. Its contents are undefined. -ENOSPC:
 * it would exceed the limit, or the budget has no room. -ENOMEM.
 */
int pool_take(struct pool *pool, uint64_t size,
	      const struct pool_readers *readers, struct piece **out);
/* Releases a piece and clears the caller's pointer; takes NULL. While other
   processes have the piece mapped and no batch is in it, its bytes are charged
   to their users. */
void pool_give(struct pool *pool, struct piece **piece);

/*
 * Opens the memory for a process of this user, who is among its readers. The
 * caller sends the descriptor and closes it. -ENOSPC: the memory is private, or
 * too many users hold it.
 */
int pool_share(struct pool *pool, struct piece *piece, uid_t uid, int *fd);

/*
 * Like pool_give(), for memory whose content another process may still read.
 * The pool does not use it until that process has closed and unmapped it. Until
 * then the bytes are charged to its holders.
 */
void pool_abandon(struct pool *pool, struct piece **piece);

/* Frees all unused pieces, and abandoned pieces that no other process has any
   more. Returns whether it freed any. */
bool pool_tidy(struct pool *pool);
/* Returns whether the pool holds more than `keep`. */
bool pool_is_over(struct pool *pool);

struct pool_stats {
	uint64_t pieces;    /* all pieces, used or not */
	uint64_t bytes;	    /* all that the pieces have */
	uint64_t unused;    /* pieces */
	uint64_t abandoned; /* bytes, not counted above */
	uint64_t collapsed; /* pieces of huge pages */
	uint64_t made;	    /* pieces since the pool was opened */
};

void pool_stats(struct pool *pool, struct pool_stats *out);

#endif

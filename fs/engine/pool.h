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
 * A process that piece_lend() gave a descriptor may keep its mapping for as
 * long as it likes, and sees what the piece holds later. So a lent piece is
 * used again only for batches that the same users may read, until no other
 * process has it open or mapped. The kernel answers that: it grants a write
 * lease on a file only if nobody else has it open (fcntl(2), F_SETLEASE).
 *
 * Thread-safe. pool.lock may be taken under engine.lock, and budget.lock under
 * it. It is not held while memory is allocated or freed.
 */
#ifndef FS_ENGINE_POOL_H
#define FS_ENGINE_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct budget;

enum { POOL_ALIGN = 2 << 20 };

struct pool;

/* The users who may read a dataset: two that are equal have the same. */
struct pool_readers {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

enum { PIECE_BORROWERS = 4 };

struct piece {
	struct piece *prev, *next;   /* links of the pool */
	uint8_t *bytes;		     /* aligned to POOL_ALIGN */
	uint64_t capacity;	     /* a multiple of POOL_ALIGN */
	uint64_t id;		     /* unique in the pool, never used again */
	int fd;			     /* sealed; -1 if the memory is private */
	bool collapsed;		     /* of huge pages */
	struct pool_readers readers; /* of its batch */
	/* Guarded by pool.lock: the users whose processes may have it mapped.
	 */
	uid_t borrowers[PIECE_BORROWERS];
	unsigned num_borrowers;
	bool is_pinned; /* by them, while it is unused */
};

struct pool_options {
	uint64_t limit; /* bytes of all pieces but abandoned ones */
	uint64_t keep;	/* beyond that, unused pieces that no other process
			   has are freed */
	struct budget *budget; /* charged for all pieces; NULL: none */
};

int pool_open(const struct pool_options *options, struct pool **out);
/* The caller has given all pieces back. Takes NULL. */
void pool_close(struct pool *pool);

/*
 * Gets a piece of at least `size` bytes, and at most twice that in huge pages,
 * for a batch that these users may read. Its contents are undefined. -ENOSPC:
 * over the limit, or no room in the budget. -ENOMEM.
 */
int pool_take(struct pool *pool, uint64_t size,
	      const struct pool_readers *readers, struct piece **out);
/* Gives a piece back and clears the caller's pointer; takes NULL. As long as
   other processes have it and no batch needs it, their users pin its bytes. */
void pool_give(struct pool *pool, struct piece **piece);

/*
 * Opens the memory for a process of this user, who is among its readers. The
 * caller sends the descriptor away and closes it. -ENOSPC: the memory is
 * private, or was lent to too many users.
 */
int pool_lend(struct pool *pool, struct piece *piece, uid_t uid, int *fd);

/*
 * Like pool_give(), for memory whose content another process may still read. It
 * is not used before that process has closed and unmapped it. Until then its
 * bytes are pinned by the users that it was lent to.
 */
void pool_abandon(struct pool *pool, struct piece **piece);

/* Frees all unused pieces, and abandoned ones that no process has any more.
   Returns whether it freed any. */
bool pool_tidy(struct pool *pool);
/* Whether the pool holds more than it is to keep. */
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

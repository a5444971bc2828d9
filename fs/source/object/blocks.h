/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a source that are in memory, or are being read, within a limit.
 * Blocks of tables and other blocks each have a part of the limit, so that a
 * scan of pages does not drop tables. If there is no room, the block that was
 * used least recently goes. The caller serializes all calls.
 */
#ifndef FS_SOURCE_OBJECT_BLOCKS_H
#define FS_SOURCE_OBJECT_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* If memory runs out, uthash leaves the element out instead of exiting. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* One packet train of a new connection carries two of them. */
enum { BLOCK_BYTES = 4096 };

enum block_kind { BLOCK_OTHER, BLOCK_TABLE, BLOCK_KINDS };

enum block_state { BLOCK_READING, BLOCK_READY, BLOCK_FAILED };

struct tables_fetch;

struct block {
	UT_hash_handle hh;
	struct block *prev, *next; /* in blocks.idle while it has no users */
	uint64_t index;		   /* offset in the source / BLOCK_BYTES */
	unsigned users;		   /* its fetch, and readers */
	enum block_state state;
	enum block_kind kind;
	int error;		    /* of BLOCK_FAILED */
	struct tables_fetch *fetch; /* of BLOCK_READING */
	uint8_t bytes[BLOCK_BYTES];
};

struct blocks {
	struct block *table;
	struct block *idle[BLOCK_KINDS]; /* least recently used first */
	uint64_t num[BLOCK_KINDS];
	uint64_t most[BLOCK_KINDS];
};

/* NULL: neither in memory nor being read. */
struct block *blocks_find(struct blocks *b, uint64_t index);

/* Adds a block that is being read, with one user. NULL: there is no room. */
struct block *blocks_add(struct blocks *b, uint64_t index,
			 enum block_kind kind);

/* Keeps the block in memory until blocks_drop(). */
void blocks_use(struct blocks *b, struct block *block);
void blocks_drop(struct blocks *b, struct block *block);

/* Ends the reading of a block, and drops its fetch. A failed block is gone as
   soon as it has no users; until then blocks_find() does not find it. */
void blocks_settle(struct blocks *b, struct block *block, int error);

/* Changes the kind of a block. */
void blocks_sort(struct blocks *b, struct block *block, enum block_kind kind);

/* Frees all blocks; they have no users. */
void blocks_fini(struct blocks *b);

#endif

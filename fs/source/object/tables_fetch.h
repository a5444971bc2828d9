/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of tables that are requested, and the readers that wait for them, each
 * for one fetch after the other. If the tables fit into memory, fetches in the
 * background get all of them.
 *
 * The caller holds tables.lock, except where noted.
 */
#ifndef FS_SOURCE_OBJECT_TABLES_FETCH_H
#define FS_SOURCE_OBJECT_TABLES_FETCH_H

#include <pthread.h>
#include <sys/uio.h>

#include "fs/source/local/source.h"
#include "fs/source/object/ahead.h"
#include "fs/source/object/blocks.h"

enum {
	/* The most bytes of one request: new connections carry several of half
	   a MiB sooner than one of a MiB. */
	TABLES_PIECE = 1 << 19,
	TABLES_PIECE_BLOCKS = TABLES_PIECE / BLOCK_BYTES,
	/* The most bytes that one reader holds. */
	TABLES_WANT = 1 << 20,
	TABLES_WANT_BLOCKS = TABLES_WANT / BLOCK_BYTES + 1,
	TABLES_RANGES_MAX = 4,
};

/* A reader that waits for blocks, one fetch after the other. */
struct tables_want {
	struct tables_want *prev, *next;	     /* in fetch->waiting */
	struct tables_want *prev_async, *next_async; /* in tables.async */
	struct source_request *caller;		     /* NULL: a thread waits */
	struct tables_fetch *fetch; /* that it waits for, or NULL */
	uint64_t off;
	uint64_t size;
	bool joined; /* a fetch that began in the background */
	unsigned num;
	unsigned ready; /* blocks from the first one on that are READY */
	int result;
	bool is_done;
	struct block *blocks[TABLES_WANT_BLOCKS];
};

/* A request of adjacent blocks. */
struct tables_fetch {
	struct source_request request;
	struct tables_fetch *prev, *next; /* in a list of fetches to submit */
	struct tables *tables;
	struct tables_want *waiting;
	bool is_background;
	unsigned num;
	struct block *blocks[TABLES_PIECE_BLOCKS];
	struct iovec iov[TABLES_PIECE_BLOCKS];
};

struct tables {
	struct source base;
	struct source *inner;
	uint64_t size;
	pthread_mutex_t lock; /* innermost; guards all members below */
	pthread_cond_t settled;
	struct blocks blocks;
	struct ahead ahead;
	struct tables_want *async; /* of requests */
	bool closing;
	bool noted; /* the ranges are known */
	struct source_range ranges[TABLES_RANGES_MAX];
	size_t num_ranges;
	/* Reading whole tables: the next byte, and how many requests are under
	   way. */
	bool is_wanted;
	bool is_filling; /* a thread submits requests */
	size_t range;
	uint64_t next;
	unsigned num_background;
	int64_t passed_ns; /* when a request passed through last */
	uint64_t reads, waits;
};

struct tables *tables_of(const struct source *source);
/* Returns the table that contains the byte, or NULL. */
const struct source_range *tables_at(const struct tables *t, uint64_t off);
bool tables_contain(const struct tables *t, uint64_t off, uint64_t size);
/* A block is one of a table if any of its bytes are. */
enum block_kind tables_kind_of(const struct tables *t, uint64_t index);
/* Returns whether all blocks of a range are in memory, or being read. Those
   that are count as used now: the missing ones must not replace them. */
bool tables_have(struct tables *t, uint64_t off, uint64_t size);
/*
 * Makes fetches of the blocks of a range that no reader has requested, and
 * appends them to the list for tables_submit_fetches(). Their requests end at
 * multiples of TABLES_PIECE. Leaves out blocks for which there is no room.
 */
void tables_make_fetches(struct tables *t, uint64_t off, uint64_t end,
			 bool must, struct tables_fetch **list);
/* Extends a range of a table to whole groups. While the tables are unknown, the
   dataset is being opened, and single blocks arrive sooner. */
void tables_extend(const struct tables *t, uint64_t *off, uint64_t *end);
/* Returns the most bytes to request ahead of one reader. */
uint64_t tables_most_ahead(const struct tables *t, uint64_t off);
/* Without the lock. */
void tables_submit_fetches(struct tables *t, struct tables_fetch *list);
/* Copies the blocks of a reader, which are READY, into a request. Without the
   lock. */
void tables_want_copy(const struct tables_want *w,
		      const struct source_request *q);
/* Drops the blocks of a reader. */
void tables_want_drop(struct tables *t, struct tables_want *w);
/*
 * Takes the blocks of a range of at most TABLES_WANT bytes, and makes fetches
 * of the missing ones. Returns false if there is no room for them.
 */
bool tables_want_take(struct tables *t, struct tables_want *w, uint64_t off,
		      uint64_t size, struct tables_fetch **list);
/* Returns the most blocks that the tables have. */
uint64_t tables_num_blocks(const struct tables *t);
/* Submits requests until enough are under way. If they are done before
   source_submit() returns, the loop continues, so that the stack does not
   grow. Without the lock. */
void tables_fill(struct tables *t);
/* Begins to read whole tables. */
void tables_want_all(struct tables *t);
/* Drops the blocks of a request, and ends it. Without the lock. */
void tables_want_finish(struct tables *t, struct tables_want *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a page cache, within a hard limit: chooses the chunks to evict,
 * and their order. The chunk that is needed last is evicted first; it may stay
 * compressed in a cold tier.
 *
 * Locks: room.lock, then one of a shard of the table.
 */
#ifndef FS_DATA_CACHE_EVICT_H
#define FS_DATA_CACHE_EVICT_H

#include "fs/data/cache/table.h"

struct cold;

struct room {
	struct table *table;
	struct counts *counts;
	/* As in struct cache_options. */
	uint64_t (*next_use)(void *arg, const struct cache_file *file,
			     uint64_t chunk);
	void (*wasted)(void *arg, uint64_t owner, uint64_t bytes);
	void *arg;
	struct cold *cold;    /* NULL: none */
	pthread_mutex_t lock; /* guards the members down to `rekey_ns` */
	struct arena *arena;
	struct heap heap;
	uint64_t limit;
	uint64_t overhead;
	int64_t rekey_ns;    /* earliest time to compute all keys again */
	atomic_bool stale;   /* all keys in the heap are out of date */
	atomic_bool is_full; /* chunks have keys: something was evicted */
};

/* The members down to `arg` are set before. `limit` and `cold` as in struct
   cache_options. After a failure, the caller calls evict_close(). */
int evict_open(struct room *room, uint64_t limit, uint64_t cold);
/* Takes zeros. */
void evict_close(struct room *room);

/* Fills a chunk from the cold tier. Returns false if the tier does not contain
   it. */
bool evict_take_cold(struct room *room, struct chunk *g);

/* Evicts down to a new limit. Chunks with references are evicted after the last
   reference is dropped. */
void evict_set_limit(struct room *room, uint64_t bytes);

/* --- under the room's lock --- */

/* Returns when a chunk is needed next. */
uint64_t evict_key(struct room *room, const struct chunk *g);

/* Evicts chunks that are needed later than `key`, until `bytes` of frames and
   `overhead` bytes of bookkeeping fit. -ENOSPC if they never do. */
int evict_make_room(struct room *room, uint64_t bytes, uint64_t overhead,
		    uint64_t key);

/* Frees a chunk that is neither in the table nor in the heap. */
void evict_give_back(struct room *room, struct chunk *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page cache of an engine: payloads of all of its datasets, read past the
 * kernel's cache, within a hard limit. One read per page, however many wait
 * for it. What is evicted is what will be needed last, which the owner knows.
 * Evicted pages may stay compressed in a cold tier.
 *
 * Thread-safe. Locks: `room`, then one of a shard; neither is held while
 * reading, copying or compressing.
 */
#ifndef FS_CACHE_CACHE_H
#define FS_CACHE_CACHE_H

#include "fs/cache/file.h"

struct cache_options {
	uint64_t limit; /* bytes, all included but the cold tier */
	uint64_t cold;	/* bytes of the cold tier; 0: none */
	/* When a chunk is needed next. Called with locks held: it may take no
	   lock of the cache's. */
	uint64_t (*next_use)(void *arg, const struct cache_file *file,
			     uint64_t chunk);
	/* Whose read is over, of so many bytes; 0: it failed. */
	void (*read_done)(void *arg, uint64_t owner, uint64_t bytes);
	/* What was read for an owner is evicted, and nobody had used it. Called
	   as next_use(). */
	void (*wasted)(void *arg, uint64_t owner, uint64_t bytes);
	void *arg;
};

int cache_open(const struct cache_options *options, struct cache **out);
/* Nobody reads any more. Takes NULL. */
void cache_close(struct cache *cache);

/* Before anything is read; -E2BIG beyond CACHE_FILES_MAX. The dataset is closed
   after the cache. */
enum { CACHE_FILES_MAX = 64 };
int cache_add(struct cache *cache, struct dataset *ds);

bool cache_has(struct cache_file *file, uint64_t chunk);

/* Chunks [first, end), of which at most CACHE_RUN are looked at. */
enum { CACHE_RUN = 256 };
struct cache_want {
	uint64_t first;
	uint64_t end;
	uint64_t must;	/* somebody waits for it; CACHE_NEVER: for none */
	uint64_t owner; /* for read_done() and wasted() */
};

/*
 * Starts to read those chunks that are not there. For `must` room is made at
 * the cost of anything that nobody holds; for others, of what is needed later
 * than they are. -ENOSPC if some found no room.
 */
int cache_fetch(struct cache_file *file, const struct cache_want *want);

/* What was needed of a chunk is over: its next use is another one. */
void cache_touch(struct cache_file *file, uint64_t chunk);

/* Reads under way. */
unsigned cache_reads(const struct cache *cache);

/* next_use() tells otherwise than before. */
void cache_rekey(struct cache *cache);

/* Evicts down to a new limit. */
void cache_set_limit(struct cache *cache, uint64_t bytes);

/* Counters since open. */
struct cache_stats {
	uint64_t hits;	   /* values that were there when they were needed */
	uint64_t late;	   /* on their way: the reader had to wait */
	uint64_t misses;   /* nobody had asked for them before */
	uint64_t bypassed; /* read without the cache */
	uint64_t reads;	   /* requests to the device */
	uint64_t read_bytes;
	uint64_t delivered_bytes; /* to batches */
	uint64_t evicted_bytes;
	uint64_t wasted_bytes; /* evicted before anybody used them */
	uint64_t cold_hits;
	uint64_t cold_bytes; /* what these would have read */
	uint64_t cold_dropped;
	uint64_t used_bytes; /* now, as the next */
	uint64_t cold_used_bytes;
	uint64_t limit;
};

void cache_stats(struct cache *cache, struct cache_stats *out);

/* Of values that were late or missed: how long batches waited for them. */
const struct tally *cache_waits(const struct cache *cache);

/* Those of them that can be told of one reader. */
struct cache_counts {
	uint64_t hits;
	uint64_t late;
	uint64_t misses;
	uint64_t bypassed;
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t delivered_bytes;
	uint64_t wasted_bytes;
};

/* Takes what a tally has, and leaves it empty. */
void cache_count(struct cache_counts *counts, struct payload_tally *tally);

#endif

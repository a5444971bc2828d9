/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page cache of an engine: the payloads of its datasets, read by direct
 * I/O, within a hard limit. Each page is read once for all readers that wait
 * for it. If memory is short, the cache evicts the chunk that is needed last;
 * the owner provides that order. Evicted chunks may stay compressed in a cold
 * tier.
 *
 * fs/data/cache/table finds chunks, fs/data/cache/evict makes room for them,
 * and this module reads them. Thread-safe. Locks: `room.lock`, then one of a
 * shard; neither is held while reading, copying or compressing.
 */
#ifndef FS_DATA_CACHE_CACHE_H
#define FS_DATA_CACHE_CACHE_H

#include "fs/data/cache/file.h"

struct cache_options {
	uint64_t limit; /* bytes, with all but the cold tier */
	uint64_t cold;	/* bytes of the cold tier; 0: none */
	/* Returns when a chunk is needed next: smaller is sooner,
	   CACHE_NEVER is never. Called with locks held: it may take no lock
	   of the cache. */
	uint64_t (*next_use)(void *arg, const struct cache_file *file,
			     uint64_t chunk);
	/* A read for `owner` has ended; `bytes` is 0 if it failed. */
	void (*read_done)(void *arg, uint64_t owner, uint64_t bytes);
	/* Bytes that were read for `owner` are evicted without having been
	   used. Called with locks held, as next_use() is. */
	void (*wasted)(void *arg, uint64_t owner, uint64_t bytes);
	void *arg;
};

int cache_open(const struct cache_options *options, struct cache **out);
/* Closes the cache. No thread may still read from it. Takes NULL. */
void cache_close(struct cache *cache);

/* Call before the first read. -E2BIG beyond CACHE_FILES_MAX. The dataset is
   closed after the cache. */
enum { CACHE_FILES_MAX = 64 };
int cache_add(struct cache *cache, struct dataset *ds);

bool cache_has(struct cache_file *file, uint64_t chunk);

/* Chunks [first, end), of which cache_fetch() looks at no more than CACHE_RUN.
 */
enum { CACHE_RUN = 256 };
struct cache_want {
	uint64_t first;
	uint64_t end;
	uint64_t must;	/* a reader waits for this chunk; CACHE_NEVER: none */
	uint64_t owner; /* for read_done() and wasted() */
};

/*
 * Starts to read the chunks that are missing. To make room for `must`, it
 * evicts any chunk without references; for other chunks, only chunks that are
 * needed later than they are. -ENOSPC if some found no room.
 */
int cache_fetch(struct cache_file *file, const struct cache_want *want);

/* Call after a use of a chunk, because its next use has changed. */
void cache_touch(struct cache_file *file, uint64_t chunk);

/* Return the number of unfinished reads, of the cache and of one file, and the
   bytes that they read. */
unsigned cache_reads(const struct cache *cache);
unsigned cache_file_reads(const struct cache_file *file);
uint64_t cache_reading(const struct cache *cache);

/* Call if next_use() returns other values than before, for any chunk. */
void cache_rekey(struct cache *cache);

/* Evicts down to a new limit. */
void cache_set_limit(struct cache *cache, uint64_t bytes);

/* Counters since open. */
struct cache_stats {
	uint64_t hits;	   /* values that were in the cache */
	uint64_t stalled;  /* the read was not complete: the reader waited */
	uint64_t misses;   /* values that nothing had requested before */
	uint64_t bypassed; /* read without the cache */
	uint64_t reads;	   /* requests to the device */
	uint64_t read_bytes;
	uint64_t delivered_bytes; /* to batches */
	uint64_t evicted_bytes;
	uint64_t wasted_bytes; /* evicted without having been used */
	uint64_t cold_hits;
	uint64_t cold_bytes; /* bytes that these hits did not read */
	uint64_t cold_dropped;
	uint64_t used_bytes; /* now in use, without the cold tier */
	uint64_t cold_used_bytes;
	uint64_t limit;
};

void cache_stats(struct cache *cache, struct cache_stats *out);

/* Time that batches waited for values that were stalled or missed. */
const struct counters *cache_waits(const struct cache *cache);

/* The counters that exist for each reader. */
struct cache_counts {
	uint64_t hits;
	uint64_t stalled;
	uint64_t misses;
	uint64_t bypassed;
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t delivered_bytes;
	uint64_t wasted_bytes;
};

/* Adds what a tally has counted, and leaves the tally empty. */
void cache_count(struct cache_counts *counts, struct payload_tally *tally);

#endif

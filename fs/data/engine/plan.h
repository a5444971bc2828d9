/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: it records all readers, and computes when each sample is needed.
 * All threads and ranks that open batches of one spec in turn are one reader.
 * The plan can compute its future, because orders are functions. If there is a
 * page cache, a thread reads ahead in the order of need, and the cache gets the
 * order of eviction from the plan.
 *
 * Thread-safe. The lock of a plan is taken under those of a cache, so the plan
 * calls no function of the cache while it holds the lock.
 */
#ifndef FS_DATA_ENGINE_PLAN_H
#define FS_DATA_ENGINE_PLAN_H

#include "fs/data/cache/cache.h"
#include "fs/data/engine/batch.h"

struct plan;

/* `ahead`: bytes that are read before they are needed. */
int plan_open(uint64_t ahead, struct plan **out);
/* Takes NULL. */
void plan_close(struct plan *plan);

/* Starts a thread that reads ahead into the cache, which has `room` bytes. Call
   plan_stop() before the cache is closed. */
int plan_start(struct plan *plan, struct cache *cache, uint64_t room);
void plan_set_room(struct plan *plan, uint64_t room);
void plan_stop(struct plan *plan);

/* A batch that a reader is likely to request soon. */
struct plan_next {
	uint64_t epoch;
	uint64_t number;
};

/* Records that a reader opens a batch. NULL share: unknown. Fills `next` with
   up to `max` batches that the same reader is likely to request after it.
   Returns their number. */
unsigned plan_note(struct plan *plan, const struct batch_key *key,
		   const struct batch_share *share, struct plan_next *next,
		   unsigned max);

/* Returns whether a reader may still open the batch. */
bool plan_wants(struct plan *plan, const struct batch_key *key);

/* Starts to read the missing payloads of a batch at once, because a reader
   waits for it. */
void plan_fetch(struct plan *plan, const struct batch *batch);

/* Records that a batch was collated, so that it no longer needs its payloads.
   Adds its tally to the counts of a reader. */
void plan_done(struct plan *plan, const struct batch *batch);

/* Records that a reader got the batch, which may have been collated for another
   reader. */
void plan_shared(struct plan *plan, const struct batch *batch);

/* Callbacks for cache_options. plan_next_use() returns when a chunk is needed
   next, in bytes that all readers read until then, if they continue at the same
   rate. */
uint64_t plan_next_use(void *plan, const struct cache_file *file,
		       uint64_t chunk);
void plan_read_done(void *plan, uint64_t reader, uint64_t bytes);
void plan_wasted(void *plan, uint64_t reader, uint64_t bytes);

/* Statistics of one reader. */
struct plan_reader {
	const struct dataset *ds;
	struct spec spec;
	uint64_t epoch;
	uint64_t number; /* the highest that was opened */
	uint64_t stride; /* from batch to batch; 0: not determined yet */
	uint64_t opened; /* batches in all */
	uint64_t idle_ns;
	/* A read for several readers is counted for one of them. */
	struct cache_counts counts;
};

/* Fills at most `max` entries. Returns the number of readers. */
size_t plan_readers(struct plan *plan, struct plan_reader *out, size_t max);

#endif

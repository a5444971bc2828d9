/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who reads what, and so what will be needed when. Whoever opens batches of a
 * SPEC one after the other, in however many threads and ranks, is one reader;
 * its future is known, since orders are functions. With a page cache, a thread
 * reads ahead in order of need, and the cache asks here what to evict.
 *
 * Thread-safe. The lock of a plan is taken under those of a cache, so nothing
 * of the cache is called with it held.
 */
#ifndef FS_ENGINE_PLAN_H
#define FS_ENGINE_PLAN_H

#include "fs/cache/cache.h"
#include "fs/engine/batch.h"

struct plan;

/* `ahead`: bytes to be read before they are needed. */
int plan_open(uint64_t ahead, struct plan **out);
/* Takes NULL. */
void plan_close(struct plan *plan);

/* A thread reads ahead into the cache, which has so many bytes of room, until
   plan_stop(), which comes before the cache is closed. */
int plan_start(struct plan *plan, struct cache *cache, uint64_t room);
void plan_set_room(struct plan *plan, uint64_t room);
void plan_stop(struct plan *plan);

/* A batch that a reader will want soon. */
struct plan_next {
	uint64_t epoch;
	uint64_t number;
};

/*
 * Somebody opens a batch. Fills `next` with up to `max` batches that the same
 * reader will want after it; returns how many.
 */
unsigned plan_note(struct plan *plan, const struct batch_key *key,
		   struct plan_next *next, unsigned max);

/* Whether a reader may still come for the batch. */
bool plan_wants(struct plan *plan, const struct batch_key *key);

/* Starts to read what a batch needs and is not there, now: somebody waits. */
void plan_fetch(struct plan *plan, const struct batch *batch);

/* A batch was assembled: what it needed is needed no more, and what it met goes
   from its tally to a reader's counts. */
void plan_done(struct plan *plan, const struct batch *batch);

/* A reader has the batch, which may have been assembled for another. */
void plan_shared(struct plan *plan, const struct batch *batch);

/* For cache_options: when a chunk is needed next, in bytes to be read by all
   readers, if they go on at the same rate. */
uint64_t plan_next_use(void *plan, const struct cache_file *file,
		       uint64_t chunk);
void plan_read_done(void *plan, uint64_t reader, uint64_t bytes);
void plan_wasted(void *plan, uint64_t reader, uint64_t bytes);

/* What one reader does; for statistics. */
struct plan_reader {
	const struct dataset *ds;
	struct spec spec;
	uint64_t epoch;
	uint64_t number; /* the highest that was opened */
	uint64_t stride; /* from batch to batch; 0: not known yet */
	uint64_t opened; /* batches in all */
	uint64_t idle_ns;
	/* What is read for several is counted for one of them. */
	struct cache_counts counts;
};

/* Fills at most `max`; returns how many there are. */
size_t plan_readers(struct plan *plan, struct plan_reader *out, size_t max);

#endif

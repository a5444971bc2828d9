/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reader of batches in the plan: its position, the batches that it has
 * opened, and the time of its next use of a sample. Not thread-safe; the plan
 * locks.
 */
#ifndef FS_DATA_ENGINE_READER_H
#define FS_DATA_ENGINE_READER_H

#include "fs/base/order/draws.h"
#include "fs/base/order/order.h"
#include "fs/data/cache/cache.h"
#include "fs/data/engine/batch.h"

enum {
	/* The number of opened batches that are recorded. */
	READER_WINDOW = 512,
	/* The most steps between threads and ranks of one job. */
	READER_LAG = 64,
	/* The most steps that batches are prefetched. */
	READER_PREFETCH = 8,
	/* Larger world sizes are learned from the opened batches. */
	READER_WORLD_MAX = 512,
};

#define READER_NEVER UINT64_MAX

struct reader {
	struct dataset *ds;
	struct spec spec;
	uint64_t id; /* never reused */
	uint64_t epoch;
	uint64_t passed;	/* epochs since it began */
	struct order orders[2]; /* of this epoch and of the next */
	/* Owned. NULL if the order does not sample with replacement, or memory
	   was short. */
	struct draws *draws;
	uint64_t batches; /* batches and samples: of an epoch */
	uint64_t samples;
	uint64_t first; /* lowest batch it opened in this epoch */
	uint64_t top;	/* highest */
	/* gcd of the steps between batches in this epoch and in the one before
	   it, and in this epoch alone; 0: unknown. */
	uint64_t stride;
	uint64_t learned;
	/* If loaders report their ranks: the world size, and the remainders of
	   their batch numbers, in this epoch and in the next. Else 0. */
	uint64_t world;
	uint64_t turns[2][READER_WORLD_MAX / 64];
	uint64_t num_turns; /* in turns[0] */
	uint64_t floor;	    /* first batch in `seen` and `done` */
	uint64_t seen[READER_WINDOW / 64]; /* opened */
	uint64_t done[READER_WINDOW /
		      64]; /* collated, often before they are opened */
	uint64_t opened;
	struct cache_counts counts; /* of its batches and of reads for it */
	int64_t last_ns; /* of CLOCK_MONOTONIC: when it last opened a batch */
	/* For the plan's thread: the number of samples that it has examined,
	   from the start of the epoch, and into the following one. */
	uint64_t ahead;
	/* The number whose records it has requested, counted in the same
	   way. */
	uint64_t records;
	bool is_requested; /* all samples of its first batch are */
	double missing;	   /* the part of recently examined samples to read */
	bool is_blocked;   /* no room to read further */
	bool is_silent; /* it opened no batch for so long that it has no share
			    of the cache */
	/* Progress in bytes, the unit that all readers share. */
	uint64_t base;
	uint64_t weight;  /* bytes of a sample */
	uint64_t trusted; /* it is likely to continue to here */
};

void reader_init(struct reader *r, const struct batch_key *key);
void reader_fini(struct reader *r);

/* Returns whether this reader is likely to be the one that opens a batch
   now. */
bool reader_matches(const struct reader *r, const struct batch_key *key);

/* The reader opens the batch. NULL share: unknown. */
void reader_advance(struct reader *r, const struct batch_key *key,
		    const struct batch_share *share);

/* Returns the mean distance between the batches that it opens. 0: not
   determined yet. */
uint64_t reader_step(const struct reader *r);

/* Returns whether its first batch is the only one, and not collated yet. */
bool reader_begins(const struct reader *r);

/* These return whether it may still open the batch, and whether it has opened
   it. */
bool reader_wants(const struct reader *r, const struct batch_key *key);
bool reader_opened(const struct reader *r, const struct batch_key *key);

/* Records that the batch was collated and needs no more reading. Returns false
   if that was recorded already. */
bool reader_done(struct reader *r, const struct batch_key *key);

/* Returns whether to collate a batch of this epoch (0) or of the following one
   (1) for this reader. */
bool reader_awaits(const struct reader *r, unsigned next, uint64_t number);

/* Returns the number of samples that it has passed since it began. */
uint64_t reader_position(const struct reader *r);

/* Returns when it uses a sample, as a reader_position(). READER_NEVER: it does
   not use it. */
uint64_t reader_next_use(const struct reader *r, uint64_t sample);

/* Replaces batch *number of epoch *next by the batch that the reader is likely
   to request after it. Returns false if that cannot be determined. */
bool reader_next(const struct reader *r, unsigned *next, uint64_t *number);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reader of batches as the plan sees it: where it is, which batches it has
 * opened, and when it will come to a sample. Not thread-safe; the plan locks.
 */
#ifndef FS_ENGINE_READER_H
#define FS_ENGINE_READER_H

#include "fs/cache/cache.h"
#include "fs/engine/batch.h"
#include "fs/order/draws.h"
#include "fs/order/order.h"

enum {
	/* Batches that are remembered as opened. */
	READER_WINDOW = 512,
	/* Steps that threads and ranks of one job are apart at most. */
	READER_LAG = 64,
	/* Steps that batches are assembled ahead of their reader at most. */
	READER_AHEAD = 8,
};

#define READER_NEVER UINT64_MAX

struct reader {
	struct dataset *ds;
	struct spec spec;
	uint64_t id; /* never reused */
	uint64_t epoch;
	uint64_t passed;	/* epochs since it began */
	struct order orders[2]; /* of this epoch and of the next */
	/* Its own; NULL where nothing is drawn, or without memory. */
	struct foresight *foresight;
	uint64_t batches; /* of an epoch, as the next */
	uint64_t samples;
	uint64_t first;	 /* lowest batch it opened in this epoch */
	uint64_t top;	 /* highest */
	uint64_t stride; /* gcd of the steps between batches; 0: not known */
	uint64_t floor;	 /* the next two begin with this batch */
	uint64_t seen[READER_WINDOW / 64]; /* opened */
	uint64_t done[READER_WINDOW / 64]; /* assembled: often before */
	uint64_t opened;
	struct cache_counts counts; /* of its batches, and read for it */
	int64_t last_ns; /* of CLOCK_MONOTONIC: when it was heard of last */
	/* Of the plan's thread: samples looked at, counted from the start of
	   the epoch on; those of the next follow. */
	uint64_t ahead;
	bool is_blocked; /* no room to read further */
	/* Progress in bytes that all readers have in common. */
	uint64_t base;
	uint64_t weight; /* bytes of a sample */
};

void reader_init(struct reader *r, const struct batch_key *key);
void reader_fini(struct reader *r);

/* Whether it is this reader, by all we know, that opens a batch now. */
bool reader_matches(const struct reader *r, const struct batch_key *key);

/* It opens the batch. */
void reader_advance(struct reader *r, const struct batch_key *key);

/* Whether it may still open the batch, or has. */
bool reader_wants(const struct reader *r, const struct batch_key *key);
bool reader_opened(const struct reader *r, const struct batch_key *key);

/* The batch was assembled, and needs no more reading; false: as was known. */
bool reader_done(struct reader *r, const struct batch_key *key);

/* Whether a batch of this epoch (0) or of the next (1) is to be assembled for
   it. */
bool reader_awaits(const struct reader *r, unsigned next, uint64_t number);

/* Samples it has passed since it began. */
uint64_t reader_position(const struct reader *r);

/* When it comes to a sample, in the same unit; READER_NEVER: not at all. */
uint64_t reader_next_use(const struct reader *r, uint64_t sample);

/* The next batch it will want after one of epoch `next`; false: none that is
   known. */
bool reader_next(const struct reader *r, unsigned *next, uint64_t *number);

#endif

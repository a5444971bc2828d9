/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the trainer and the loader keep up with each other: how full the queue is
 * when the trainer comes, how long it waits and for which stage, how long it
 * takes by itself. What is written belongs to the thread that calls next();
 * sums may be read by any.
 */
#ifndef LOADER_RUN_PACE_H
#define LOADER_RUN_PACE_H

#include <stdbool.h>

#include "fs/metrics/rank_figures.h"
#include "loader/util/stages.h"

/* The epoch's line, with room for all numbers. */
enum { PACE_LINE_SIZE = 256 };

enum pace_sum {
	PACE_BATCHES,
	PACE_SAMPLES,
	PACE_WAITS, /* a batch was not ready when it was asked for */
	PACE_WAIT_NS,
	PACE_TRAINER_NS,
	PACE_READY, /* batches that were ready, whenever one was asked for */
	PACE_EMPTY, /* times that none was */
	PACE_FULL,  /* times that all were */
	PACE_SUMS,
};

struct pace {
	struct lane *lane; /* of the thread that calls next() */
	uint32_t places;   /* of the queue */
	atomic_uint_fast64_t sums[PACE_SUMS];
	/* Of PACE_WAIT_NS: by where the batch was meanwhile. */
	atomic_uint_fast64_t delay_ns[STAGES];
	atomic_uint_fast64_t epoch; /* of the last batch, as the next */
	atomic_uint_fast64_t number;
	uint64_t asked_ns;
	bool is_waiting;   /* since then, without having asked */
	uint64_t given_ns; /* 0: no batch of this epoch was given */
	/* Of an epoch that the trainer has had all of, so far; else false. */
	bool is_whole;
	uint64_t begun_ns;
	uint64_t sums_before[PACE_SUMS];
	uint64_t delay_before[STAGES];
};

/* When a batch was where; 0: it was not there yet. */
struct pace_times {
	uint64_t fetched_ns;
	uint64_t made_ns;
	uint64_t busy_ns;   /* of all threads that ran rows of it */
	uint64_t decode_ns; /* of that */
	bool has_upload;
};

void pace_init(struct pace *p, struct lane *lane, uint32_t places);

/* The first batch of an epoch is about to be asked for. */
void pace_begin(struct pace *p, uint64_t now);
/* The trainer goes elsewhere, or did not get a batch. */
void pace_break(struct pace *p);
/*
 * The epoch is over. If the trainer had all of it, its line, else none: `line`
 * becomes empty.
 */
void pace_end(struct pace *p, uint64_t now, uint64_t epoch,
	      char line[PACE_LINE_SIZE]);

/* The trainer waits until it need not for the batch that it asks for next. */
void pace_wait(struct pace *p, uint64_t now);
/* The trainer comes for a batch. */
void pace_ask(struct pace *p, uint64_t now);
/* So many are ready. */
void pace_look(struct pace *p, uint32_t ready);
/* The trainer has waited from `begin` on for a batch; NULL: for none. */
void pace_waited(struct pace *p, uint64_t begin, uint64_t now,
		 const struct pace_times *times);
/* The same, after pace_give(), for its outputs to reach a GPU. */
void pace_waited_for_upload(struct pace *p, uint64_t now);
/* It gets one, of so many bytes. */
void pace_give(struct pace *p, uint64_t now, const struct beton_batch *batch,
	       uint64_t bytes);

/* What is told of it all; the rest of *out stays. */
void pace_figures(const struct pace *p, struct figures *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures whether the loader keeps up with the trainer: the fill level of the
 * queue at each request, the time that the trainer waits for each stage, and
 * the time that it works.
 *
 * Threads: only the thread that calls beton_loader_next() writes. Any thread
 * may read the sums.
 */
#ifndef LOADER_RUN_LOOP_THROUGHPUT_H
#define LOADER_RUN_LOOP_THROUGHPUT_H

#include <stdbool.h>

#include "fs/base/metrics/rank_figures.h"
#include "loader/util/stages.h"

/* Buffer size for the report of any epoch. */
enum { PACE_LINE_SIZE = 256 };

enum throughput_sum {
	PACE_BATCHES,
	PACE_SAMPLES,
	PACE_WAITS, /* requests that had to wait */
	PACE_WAIT_NS,
	PACE_TRAINER_NS,
	PACE_READY, /* batches ready at each request, summed */
	PACE_EMPTY, /* requests that found the queue empty */
	PACE_FULL,  /* requests that found the queue full */
	PACE_SUMS,
};

struct throughput {
	struct stage_lane
		*lane;	 /* of the thread that calls beton_loader_next() */
	uint32_t places; /* capacity of the queue */
	atomic_uint_fast64_t sums[PACE_SUMS];
	/* PACE_WAIT_NS, divided among the stages that the batch passed
	   meanwhile. */
	atomic_uint_fast64_t delay_ns[STAGES];
	atomic_uint_fast64_t epoch; /* time of the last delivery */
	atomic_uint_fast64_t number;
	uint64_t asked_ns;
	bool is_waiting;   /* nanoseconds in throughput_wait() since asked_ns */
	uint64_t given_ns; /* 0: no batch of this epoch delivered yet */
	/* The trainer got every batch of this epoch so far. */
	bool is_whole;
	uint64_t begun_ns;
	uint64_t sums_before[PACE_SUMS];
	uint64_t delay_before[STAGES];
};

/* Times at which a batch passed each stage; 0: not yet. */
struct throughput_times {
	uint64_t answered_ns; /* the answer of a maker began */
	uint64_t fetched_ns;
	uint64_t made_ns;
	uint64_t busy_ns; /* sum over all threads that ran rows of the batch */
	uint64_t decode_ns; /* part of busy_ns that is decoding */
	bool has_upload;
};

void throughput_init(struct throughput *p, struct stage_lane *lane,
		     uint32_t places);

/* Starts an epoch. Call it before the first batch. */
void throughput_begin(struct throughput *p, uint64_t now);
/* Suppresses the report of the epoch. Call it after a seek or a failed
   batch. */
void throughput_break(struct throughput *p);
/* Ends an epoch. `line` receives its report, or "" if the trainer did not get
   every batch. */
void throughput_end(struct throughput *p, uint64_t now, uint64_t epoch,
		    char line[PACE_LINE_SIZE]);

/* Counts a wait of the trainer before its request, as in
   beton_loader_wait(). */
void throughput_wait(struct throughput *p, uint64_t now);
/* Starts a request of the trainer. */
void throughput_ask(struct throughput *p, uint64_t now);
/* Counts the ready batches at a request. */
void throughput_look(struct throughput *p, uint32_t ready);
/* Counts a wait of the trainer from `begin` to `now` for a batch with these
   times. NULL: the wait ended without a batch. */
void throughput_waited(struct throughput *p, uint64_t begin, uint64_t now,
		       const struct throughput_times *times);
/* Counts the time since throughput_give() as a wait for the upload to a GPU. */
void throughput_waited_for_upload(struct throughput *p, uint64_t now);
/* Delivers a batch to the trainer. `bytes` is the size of its outputs. */
void throughput_give(struct throughput *p, uint64_t now,
		     const struct beton_batch *batch, uint64_t bytes);

/* Writes the figures for the daemon. Leaves all other members of *out
   unchanged. */
void throughput_figures(const struct throughput *p, struct rank_figures *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the trainer and the loader keep up with each other: how full the queue is
 * when the trainer asks, how long the trainer waits and for which stage, and
 * how long it works by itself.
 *
 * Threads: only the thread that calls beton_loader_next() writes. Any thread
 * may read the sums.
 */
#ifndef LOADER_RUN_THROUGHPUT_H
#define LOADER_RUN_THROUGHPUT_H

#include <stdbool.h>

#include "fs/metrics/rank_figures.h"
#include "loader/util/stages.h"

/* The buffer size that fits any epoch's line. */
enum { PACE_LINE_SIZE = 256 };

enum throughput_sum {
	PACE_BATCHES,
	PACE_SAMPLES,
	PACE_WAITS, /* requests for which no batch was ready */
	PACE_WAIT_NS,
	PACE_TRAINER_NS,
	PACE_READY, /* batches ready at each request, summed */
	PACE_EMPTY, /* requests that found the queue empty */
	PACE_FULL,  /* requests that found the queue full */
	PACE_SUMS,
};

struct throughput {
	struct lane *lane; /* of the thread that calls beton_loader_next() */
	uint32_t places;   /* capacity of the queue */
	atomic_uint_fast64_t sums[PACE_SUMS];
	/* PACE_WAIT_NS divided among the stages in which the batch was
	   meanwhile. */
	atomic_uint_fast64_t delay_ns[STAGES];
	atomic_uint_fast64_t epoch; /* of the last batch */
	atomic_uint_fast64_t number;
	uint64_t asked_ns;
	bool is_waiting;   /* since asked_ns, in throughput_wait() */
	uint64_t given_ns; /* 0: the trainer has no batch of this epoch */
	/* The trainer has had every batch of this epoch so far. */
	bool is_whole;
	uint64_t begun_ns;
	uint64_t sums_before[PACE_SUMS];
	uint64_t delay_before[STAGES];
};

/* When a batch passed each stage; 0: not yet. */
struct throughput_times {
	uint64_t fetched_ns;
	uint64_t made_ns;
	uint64_t busy_ns;   /* all threads that ran rows of the batch */
	uint64_t decode_ns; /* the part of busy_ns spent decoding */
	bool has_upload;
};

void throughput_init(struct throughput *p, struct lane *lane, uint32_t places);

/* Call before the first batch of an epoch. */
void throughput_begin(struct throughput *p, uint64_t now);
/* Call after a seek or a failed batch: the epoch is not reported. */
void throughput_break(struct throughput *p);
/* Call at the end of an epoch. `line` receives the epoch's report, or the empty
   text if the trainer did not have every batch. */
void throughput_end(struct throughput *p, uint64_t now, uint64_t epoch,
		    char line[PACE_LINE_SIZE]);

/* The trainer waits for the next batch before it asks for it. */
void throughput_wait(struct throughput *p, uint64_t now);
/* The trainer asks for a batch. */
void throughput_ask(struct throughput *p, uint64_t now);
/* Counts the batches that are ready at a request. */
void throughput_look(struct throughput *p, uint32_t ready);
/* The trainer has waited from `begin` to `now` for a batch with these times.
   NULL: no batch came. */
void throughput_waited(struct throughput *p, uint64_t begin, uint64_t now,
		       const struct throughput_times *times);
/* The trainer has waited since throughput_give() for the outputs to reach a
 * GPU. */
void throughput_waited_for_upload(struct throughput *p, uint64_t now);
/* The trainer gets a batch. `bytes` is the size of its outputs. */
void throughput_give(struct throughput *p, uint64_t now,
		     const struct beton_batch *batch, uint64_t bytes);

/* Writes the figures that the daemon gets. The rest of *out stays. */
void throughput_figures(const struct throughput *p, struct rank_figures *out);

#endif

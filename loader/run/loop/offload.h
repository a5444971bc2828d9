/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the execution device of the operations after cuda(N, auto): the GPU,
 * or the CPU, which then uploads more bytes. Both compute the same bits, so
 * that the device can differ between batches.
 *
 * The balance starts with the GPU, which leaves the least work to the loader.
 * It judges batches in windows. If the consumer waits for the loader, the side
 * that takes less CPU time per row wins. If batches wait for the consumer or
 * for the GPU, and the CPU has spare time, the balance tries the CPU. It stays
 * there as long as the loader delivers batches as fast as before. Each failed
 * try doubles the time to the next one.
 *
 * Pure: no clocks and no threads. The caller holds a lock. Equal inputs lead to
 * equal choices.
 */
#ifndef LOADER_RUN_LOOP_OFFLOAD_H
#define LOADER_RUN_LOOP_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Least number of batches between two changes of the side. It is much
	   larger than the number of unfinished batches. */
	OFFLOAD_WINDOW = 32,
};

enum offload_side { OFFLOAD_GPU, OFFLOAD_CPU };

/* How to choose a side. Keep the order of the names in offload_parse(). */
enum offload_mode {
	OFFLOAD_BY_COST,
	OFFLOAD_ALL_GPU,
	OFFLOAD_ALL_CPU,
	OFFLOAD_TURNS, /* alternately, for tests */
};

/* Measurements of a batch that the consumer got. */
struct offload_batch {
	enum offload_side side; /* its side */
	uint32_t rows;
	uint64_t busy_ns;   /* CPU time of its rows */
	uint64_t bytes;	    /* uploaded bytes */
	uint64_t period_ns; /* since the previous batch; 0: unknown */
	bool starved;	    /* the consumer found no batch ready */
	bool full;	    /* the consumer found the queue full */
	bool blocked;	    /* the GPU still copied an earlier batch */
};

/* Sums over some batches. */
struct offload_sum {
	uint32_t batches, starved, full, blocked;
	uint64_t rows, busy_ns, bytes;
	/* Sums of known periods. The mean excludes the longest one, because the
	   consumer may have paused once. */
	uint32_t periods;
	uint64_t period_ns, longest_ns;
};

struct offload {
	enum offload_mode mode;
	enum offload_side side;
	uint32_t workers;
	struct offload_sum window; /* since the last decision */
	struct offload_sum device; /* the last window of the GPU's side */
	/* CPU time per row on the CPU's side, divided by the time on the GPU's
	   side. 0: not measured yet. */
	double ratio;
	uint64_t stay;	    /* windows on the CPU's side */
	uint64_t wait;	    /* windows until the next try */
	uint64_t next_wait; /* `wait` after the next failed try */
	bool was_blocked;   /* the reason for the try were stalled copies of the
			       GPU */
};

/* Parses "auto", "gpu", "cpu" or "turns", or an older spelling of "gpu" or
   "cpu". Returns false for any other string. */
bool offload_parse(const char *word, enum offload_mode *out);
/* "gpu", "cpu" */
const char *offload_name(enum offload_side side);

void offload_init(struct offload *b, enum offload_mode mode, uint32_t workers);

/* Chooses the side of the next batch. */
enum offload_side offload_choose(struct offload *b);

/* Adds a batch that the consumer got, and decides at the end of a window. */
void offload_add(struct offload *b, const struct offload_batch *batch);

#endif

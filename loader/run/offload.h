/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which side finishes the rows of cuda(N, auto): the GPU, or the processor,
 * which then ships more. Both make the same bits, so every batch may choose.
 *
 * Begins with the GPU, whose rows are the least work for the loader. Batches
 * are judged by the window. Where the consumer waits for the loader, the side
 * that takes less of the processors' time per row is the right one. Where
 * batches wait for the consumer or for the GPU, the processor is tried, if it
 * has the time: it stays as long as the loader keeps up and batches come no
 * more slowly. Each try that fails doubles the time to the next one.
 *
 * Pure: no clocks, no threads; the caller has a lock. Equal facts give equal
 * choices.
 */
#ifndef LOADER_RUN_OFFLOAD_H
#define LOADER_RUN_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Batches between two changes at least: what is in the making when a
	   side changes is a small part of it. */
	BALANCE_WINDOW = 32,
};

enum balance_side { BALANCE_DEVICE, BALANCE_PROCESSOR };

/* Who decides; in the order of balance_parse()'s words. */
enum balance_mode {
	BALANCE_BY_COST,
	BALANCE_ALL_DEVICE,
	BALANCE_ALL_PROCESSOR,
	BALANCE_TURNS, /* one after the other, for tests */
};

/* A batch that the consumer got. */
struct balance_batch {
	enum balance_side side; /* that was chosen for it */
	uint32_t rows;
	uint64_t busy_ns;   /* of processors, to make the rows */
	uint64_t bytes;	    /* shipped */
	uint64_t period_ns; /* since it got the last one; 0: not known */
	bool starved;	    /* it found nothing ready */
	bool full;	    /* it found all ready that is made ahead */
	bool blocked; /* the GPU was still copying out of the batch's memory */
};

/* Sums over some batches. */
struct balance_sum {
	uint32_t batches, starved, full, blocked;
	uint64_t rows, busy_ns, bytes;
	/* Of the periods that are known. The longest is left out of the mean:
	   a consumer that does something else once says nothing. */
	uint32_t periods;
	uint64_t period_ns, longest_ns;
};

struct balance {
	enum balance_mode mode;
	enum balance_side side;
	uint32_t workers;
	struct balance_sum window; /* of this side, since the last judgement */
	struct balance_sum device; /* the last window of the GPU's side */
	/* The processors' time per row where they finish it, of that where they
	   do not; 0: not known. */
	double ratio;
	uint64_t stay;	    /* windows on the processor's side */
	uint64_t wait;	    /* windows before the processor is tried */
	uint64_t next_wait; /* after it has failed */
	bool was_blocked;   /* why the processor is tried */
};

/* "auto", "device", "processor", "turns"; false: something else. */
bool balance_parse(const char *word, enum balance_mode *out);
/* "device", "processor" */
const char *balance_name(enum balance_side side);

void balance_init(struct balance *b, enum balance_mode mode, uint32_t workers);

/* For the next batch that is begun. */
enum balance_side balance_choose(struct balance *b);

/* What came of one. */
void balance_add(struct balance *b, const struct balance_batch *batch);

#endif

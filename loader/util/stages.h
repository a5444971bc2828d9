/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of the loader, and where the time of its threads goes. Each thread
 * counts in a lane of its own, so that counting costs next to nothing; whoever
 * asks gets the sum of all lanes.
 */
#ifndef LOADER_UTIL_STAGES_H
#define LOADER_UTIL_STAGES_H

#include "beton/loader.h"
#include "fs/metrics/counters.h"
#include "fs/metrics/trace.h"

enum stage {
	STAGE_READ,
	STAGE_DECODE,
	STAGE_TRANSFORM,
	STAGE_NEXT,
	STAGE_TRAINER, /* not ours: what passes between two next() */
	STAGE_UPLOAD,  /* last: only told where there is a GPU */
	STAGES,
};

/* Of one thread, which alone writes it. No two share a line of the cache. */
struct lane {
	_Alignas(64) struct tally stages[STAGES];
	struct trace_track *track; /* NULL: it is not traced */
};

/* What some rows took, one after the other. */
struct stage_cost {
	uint64_t decode_ns;
	uint64_t decoded_bytes; /* of values that had to be */
	uint64_t made_bytes;	/* of tensors that a pipeline was run for */
	uint32_t decoded;	/* rows */
};

uint64_t stage_now_ns(void);

const char *stage_name(enum stage stage);

/* So many lanes, zero; the caller frees them. */
struct lane *stage_lanes(size_t n);

/* So many rows of these samples, from `begin` to `end`. */
void stage_rows(struct lane *lane, const uint64_t *samples, uint32_t n,
		uint64_t begin, uint64_t end, const struct stage_cost *cost);

/* One counter of all lanes: a member's offset in struct tally. */
uint64_t stage_sum(const struct lane *lanes, size_t num_lanes, enum stage stage,
		   size_t counter);

/* As beton_loader_stats(); delay_ns has what next() waited for. */
size_t stage_stats(const struct lane *lanes, size_t num_lanes,
		   const atomic_uint_fast64_t delay_ns[STAGES],
		   struct beton_stage_stats *out, size_t max);

#endif

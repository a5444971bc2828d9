/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time that the loader's threads spend in each stage. Each thread
 * counts in a separate lane without locks. Readers sum all lanes.
 */
#ifndef LOADER_UTIL_STAGES_H
#define LOADER_UTIL_STAGES_H

#include "beton/loader.h"
#include "fs/base/metrics/counters.h"
#include "fs/base/metrics/trace.h"

enum stage {
	STAGE_READ,
	STAGE_DECODE,
	STAGE_TRANSFORM,
	STAGE_NEXT,
	STAGE_TRAINER, /* the time between two next() */
	/* These are reported only if they have items. */
	STAGE_UPLOAD,
	STAGE_MAKERS,  /* makers work on a batch */
	STAGE_NETWORK, /* their batches arrive */
	STAGES,
};

/* Counters of one thread, the only writer. No two lanes share a cache line. */
struct stage_lane {
	_Alignas(64) struct counters stages[STAGES];
	struct trace_track *track; /* NULL: not traced */
};

/* The time that some rows took, one after the other. */
struct stage_cost {
	uint64_t decode_ns;
	uint64_t decoded_bytes; /* of the decoded values */
	uint64_t made_bytes;	/* of the tensors that pipelines wrote */
	uint32_t decoded;	/* rows */
};

uint64_t stage_now_ns(void);

const char *stage_name(enum stage stage);

/* Returns n zeroed lanes, which the caller frees. */
struct stage_lane *stage_lanes(size_t n);

/* Counts rows of these samples, processed from `begin` to `end`. */
void stage_rows(struct stage_lane *lane, const uint64_t *samples, uint32_t n,
		uint64_t begin, uint64_t end, const struct stage_cost *cost);

/* Sums one counter over all lanes, given by its offset in struct counters. */
uint64_t stage_sum(const struct stage_lane *lanes, size_t num_lanes,
		   enum stage stage, size_t counter);

/* Implements beton_loader_stats(). delay_ns is the time that next() waited. */
size_t stage_stats(const struct stage_lane *lanes, size_t num_lanes,
		   const atomic_uint_fast64_t delay_ns[STAGES],
		   struct beton_stage_stats *out, size_t max);

#endif

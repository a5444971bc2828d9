/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed sampling spec, which names a global sequence of batches,
 * beton-orders(7): the struct and its counts. For the text see spec_text.h.
 * Pure functions.
 */
#ifndef FS_BASE_ORDER_SPEC_H
#define FS_BASE_ORDER_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "fs/base/order/subset.h"

enum {
	/* Samples of a batch. The limit bounds the memory of a batch's layout,
	   which is 32 bytes for each sample and field. */
	SPEC_BATCH_MAX = 1 << 20,
};

/* Checkpoints are JSON, whose readers have signed integers. */
#define SPEC_EPOCH_MAX ((uint64_t)INT64_MAX)

struct spec {
	enum beton_order order;
	uint64_t batch;
	uint64_t seed;
	uint64_t drop_last;
	uint64_t block;	 /* 0 unless the order uses blocks */
	uint64_t window; /* 0 unless the order uses blocks */
	uint64_t bucket; /* 0 unless the order uses buckets */
	uint64_t draws;	 /* 0 unless the order samples with replacement */
	bool has_subset;
	uint64_t first; /* samples [first, end); all without a subset */
	uint64_t end;
	/* A subset of struct spec_facts, which owns it. If not NULL, the
	   samples are the places [first, end) of this list, and first is 0. */
	const struct subset *subset;
};

/* Returns whether two specs of one dataset name the same sequence. */
bool spec_equal(const struct spec *a, const struct spec *b);

/* Samples of an epoch before drop_last omits some, and whether a sample may
   occur more than once. */
uint64_t spec_positions(const struct spec *spec);
bool spec_repeats(const struct spec *spec);

/* Batches of an epoch's global sequence, and samples of a batch. */
uint64_t spec_batches(const struct spec *spec);
uint32_t spec_batch_samples(const struct spec *spec, uint64_t batch);

/* Steps that every rank takes after `consumed` batches. */
uint64_t spec_steps(const struct spec *spec, uint64_t consumed,
		    uint32_t world_size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SPEC, parsed: it names a global sequence of batches, beton-orders(7). The
 * struct and its counts; spec_text.h has the text. Pure functions.
 */
#ifndef FS_ORDER_SPEC_H
#define FS_ORDER_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "fs/order/subset.h"

enum {
	/* Rows of a batch: bounds what a batch's layout takes (32 bytes a row
	   and field). */
	SPEC_BATCH_MAX = 1 << 20,
};

/* JSON's readers have signed numbers, and states are JSON. */
#define SPEC_EPOCH_MAX ((uint64_t)INT64_MAX)

struct spec {
	enum beton_order order;
	uint64_t batch;
	uint64_t seed;
	uint64_t drop_last;
	uint64_t block;	 /* 0 unless the order uses blocks */
	uint64_t window; /* 0 unless the order uses blocks */
	uint64_t draws;	 /* 0 unless the order draws */
	bool has_subset;
	uint64_t first; /* samples [first, end); all without a subset */
	uint64_t end;
	/* Borrowed from struct spec_facts. Not NULL: the samples are the places
	   [first, end) of this list, and first is 0. */
	const struct subset *subset;
};

/* Whether both specs of one dataset name the same sequence. */
bool spec_equal(const struct spec *a, const struct spec *b);

/* Rows of an epoch before drop_last leaves some out; whether a sample may be in
   several. */
uint64_t spec_positions(const struct spec *spec);
bool spec_repeats(const struct spec *spec);

/* Batches of an epoch's global sequence, and rows of one of them. */
uint64_t spec_batches(const struct spec *spec);
uint32_t spec_rows(const struct spec *spec, uint64_t batch);

/* Steps of every rank from `consumed` batches on. */
uint64_t spec_steps(const struct spec *spec, uint64_t consumed, uint32_t world);

#endif

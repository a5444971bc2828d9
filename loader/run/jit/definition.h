/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value operations of a chain by their definitions in C, for some values of
 * 8 bits at a time. Kernels must make the same bits.
 */
#ifndef LOADER_RUN_JIT_DEFINITION_H
#define LOADER_RUN_JIT_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/pipeline/graph/graph.h"
#include "loader/util/image.h"

enum { DEFINITION_LOT = 64, DEFINITION_VALUES = 256 };

/* Values of one channel, packed, of any type. */
union definition_values {
	uint8_t byte[DEFINITION_LOT];
	float real[DEFINITION_LOT];
	uint64_t any[DEFINITION_LOT];
};

/*
 * Some values between two operations of a chain: those of the channels from
 * `first` on, or of all three if an operation needs whole pixels.
 */
struct definition_lot {
	unsigned first;
	unsigned channels;
	size_t count; /* of each channel */
	enum dtype type;
	union definition_values *now; /* one per channel */
	union definition_values *spare;
	union definition_values memory[2][IMAGE_CHANNELS];
};

/* Bytes, which the caller writes to lot->now. */
void definition_begin(struct definition_lot *lot, unsigned first,
		      unsigned channels, size_t count);

/* Replaces the values by their results, of the chain's type. */
void definition_run(const struct chain *chain, const float *operands,
		    struct definition_lot *lot);

/* The results of all bytes of a channel, packed. Returns whether none changes.
 */
bool definition_table(const struct chain *chain, const float *operands,
		      unsigned channel, void *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upcoming positions of samples that are sampled with replacement. Such an
 * order cannot compute the positions of a sample. Therefore this module
 * computes the samples of a window of positions in advance, and indexes them by
 * sample. Not thread-safe.
 */
#ifndef FS_BASE_ORDER_DRAWS_H
#define FS_BASE_ORDER_DRAWS_H

#include "fs/base/order/order.h"

/* Positions in the window. Computing them takes a few milliseconds. Read-ahead
   needs fewer. */
enum { DRAWS_POSITIONS = 1 << 14 };

struct draws {
	uint64_t epoch; /* of orders[0] */
	uint64_t first; /* the positions [first, end) */
	uint64_t end;
	struct draws_draw {
		uint64_t sample;
		uint64_t position;
	} draws[DRAWS_POSITIONS];
};

/* Moves the window to begin at `first`. Positions run through two epochs of n
   positions each, orders[0] and orders[1]; `epoch` is the number of the first.
 */
void draws_look(struct draws *f, const struct order orders[2], uint64_t n,
		uint64_t epoch, uint64_t first);

/* Returns the nth position, from 0, of a sample within the window. ORDER_NONE:
   it has fewer positions. */
uint64_t draws_position(const struct draws *f, uint64_t sample, uint64_t nth);

#endif

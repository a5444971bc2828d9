/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next positions of samples that are sampled with replacement. Such an
 * order cannot compute the positions of a sample. So a window of positions is
 * drawn in advance and indexed by sample. Not thread-safe.
 */
#ifndef FS_ORDER_DRAWS_H
#define FS_ORDER_DRAWS_H

#include "fs/order/order.h"

/* Positions in the window: drawing them takes a few milliseconds. Read-ahead
   looks less far. */
enum { FORESIGHT_POSITIONS = 1 << 14 };

struct foresight {
	uint64_t epoch; /* of orders[0] */
	uint64_t first; /* the positions [first, end) */
	uint64_t end;
	struct foresight_draw {
		uint64_t sample;
		uint64_t position;
	} draws[FORESIGHT_POSITIONS];
};

/* Moves the window to begin at `first`. Positions run through two epochs of n
   positions each, orders[0] and orders[1]; `epoch` is the number of the first.
 */
void foresight_look(struct foresight *f, const struct order orders[2],
		    uint64_t n, uint64_t epoch, uint64_t first);

/* The nth position, from 0, of a sample within the window. ORDER_NONE: it has
   fewer. */
uint64_t foresight_position(const struct foresight *f, uint64_t sample,
			    uint64_t nth);

#endif

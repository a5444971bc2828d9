/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where drawn samples come next: orders that draw cannot be asked for the
 * positions of a sample, so the draws of some positions are made ahead, and
 * found by sample here. Not thread-safe.
 */
#ifndef FS_ORDER_DRAWS_H
#define FS_ORDER_DRAWS_H

#include "fs/order/order.h"

/* Positions that are known at a time: a few milliseconds' work, and more than
   is read ahead. */
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

/* Makes those from `first` on. Positions are counted through two epochs, which
   have n each, and `epoch` is the first one's. */
void foresight_look(struct foresight *f, const struct order orders[2],
		    uint64_t n, uint64_t epoch, uint64_t first);

/* The nth of them that are a sample's, from 0; ORDER_NONE: there are not so
   many. */
uint64_t foresight_position(const struct foresight *f, uint64_t sample,
			    uint64_t nth);

#endif

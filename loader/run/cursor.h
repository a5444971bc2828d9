/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of one rank in the global sequences of epochs (beton-orders(7)).
 * When `start` batches of an epoch are consumed, rank r of w takes batches
 * start + r, start + r + w, and so on. Pure functions.
 */
#ifndef LOADER_RUN_CURSOR_H
#define LOADER_RUN_CURSOR_H

#include <stdbool.h>

#include "fs/order/spec.h"

struct cursor {
	const struct spec *spec;
	uint32_t rank;
	uint32_t world_size;
	bool no_padding; /* a rank may have one step less than others */
	uint64_t epoch;
	uint64_t start;
	uint64_t step; /* steps of this epoch since start */
};

/* Moves to the position after `batches` consumed batches of an epoch. If that
   is all of them, moves to the start of the next epoch. */
void cursor_seek(struct cursor *c, uint64_t epoch, uint64_t batches);

/* This rank's steps of an epoch after `start` batches. */
uint64_t cursor_steps(const struct cursor *c, uint64_t start);

static inline bool cursor_at_end(const struct cursor *c)
{
	return c->step >= cursor_steps(c, c->start);
}

/* At this rank's end, moves past the last step of all ranks. */
void cursor_finish(struct cursor *c);

/* The number of the current batch in the global sequence. A number at or above
   the sequence's length is padding: it repeats batch number modulo length. */
static inline uint64_t cursor_number(const struct cursor *c)
{
	return c->start + c->step * c->world_size + c->rank;
}

/* Batches of the epoch's global sequence that all ranks have consumed. */
uint64_t cursor_consumed(const struct cursor *c);

#endif

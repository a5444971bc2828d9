/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of one rank in the global sequences of epochs (beton-orders(7)).
 * After `start` consumed batches of an epoch, rank r of w takes the batches
 * start + r, start + r + w, and so on. Pure functions.
 */
#ifndef LOADER_RUN_LOOP_CURSOR_H
#define LOADER_RUN_LOOP_CURSOR_H

#include <stdbool.h>

#include "fs/base/order/spec.h"

struct cursor {
	const struct spec *spec;
	uint32_t rank;
	uint32_t world_size;
	bool no_padding; /* a rank may have one step less than others */
	uint64_t epoch;
	uint64_t start;
	uint64_t step; /* steps of this epoch since start */
};

/* Moves to the position after `batches` consumed batches of an epoch. If the
   epoch has no more batches, moves to the start of the next epoch. */
void cursor_seek(struct cursor *c, uint64_t epoch, uint64_t batches);

/* Returns the number of this rank's steps in an epoch after `start` batches. */
uint64_t cursor_steps(const struct cursor *c, uint64_t start);

static inline bool cursor_at_end(const struct cursor *c)
{
	return c->step >= cursor_steps(c, c->start);
}

/* If this rank has no more steps, moves past the last step of all ranks.
   Otherwise does nothing. */
void cursor_finish(struct cursor *c);

/* Returns the number of the current batch in the global sequence. A number at
   or above the sequence's length is padding: it repeats the batch `number
   modulo length`. */
static inline uint64_t cursor_number(const struct cursor *c)
{
	return c->start + c->step * c->world_size + c->rank;
}

/* Returns the number of batches of the epoch's global sequence that the ranks
   have consumed. */
uint64_t cursor_consumed(const struct cursor *c);

#endif

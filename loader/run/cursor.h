/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of one rank in the global sequences of epochs (beton-orders(7)):
 * with `start` batches of an epoch consumed, rank r of w takes batches
 * start + r, start + r + w, and so on. Pure functions.
 */
#ifndef LOADER_RUN_CURSOR_H
#define LOADER_RUN_CURSOR_H

#include <stdbool.h>

#include "fs/order/spec.h"

struct cursor {
	const struct spec *spec;
	uint32_t rank;
	uint32_t world;
	uint64_t epoch;
	uint64_t start;
	uint64_t step; /* of this epoch, from start on */
};

/* To `batches` consumed of an epoch; all of them: to the next epoch. */
void cursor_seek(struct cursor *c, uint64_t epoch, uint64_t batches);

static inline bool cursor_at_end(const struct cursor *c)
{
	return c->step >= spec_steps(c->spec, c->start, c->world);
}

/* Number in the global sequence; at or above its length: padding that repeats
   batch number modulo the length. */
static inline uint64_t cursor_number(const struct cursor *c)
{
	return c->start + c->step * c->world + c->rank;
}

/* Batches of the epoch's global sequence that all ranks have consumed. */
uint64_t cursor_consumed(const struct cursor *c);

#endif

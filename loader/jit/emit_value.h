/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of one pixel, as C: a chain's value operations and conversions,
 * statement by statement. The loops around them, and where values come from and
 * go to, are others' business: emit.h for processors, emit_device.h for GPUs.
 */
#ifndef LOADER_JIT_EMIT_VALUE_H
#define LOADER_JIT_EMIT_VALUE_H

#include <stdbool.h>

#include "loader/graph/graph.h"

struct code;

/*
 * The value on its way: v0, which whoever writes the loop declares, of `type`,
 * an array of three unless it is flat; then v1, v2, ... Operands are in k.
 */
struct emit_value {
	struct code *code;
	const struct chain *chain;
	bool flat;	 /* a lane of a flat kernel, loader/jit/kernel.h */
	enum dtype type; /* of the value now */
	unsigned value;	 /* its name is v and this number */
};

/*
 * The whole chain. float16 at its end is left to the loop, which may have
 * a faster way: then the value is float.
 */
void emit_value_put(struct emit_value *w);

/* Whether it ends with float16. */
bool emit_value_has_halves(const struct chain *chain);

/* How many a value has: one at a time in a flat kernel. */
unsigned emit_value_channels(const struct emit_value *w);

/* "v2", or of a pixel "v2[1]". */
const char *emit_value_spell(const struct emit_value *w, unsigned channel,
			     char out[static 32]);

bool emit_value_uses(const struct chain *chain, const struct op *op);

/* All that `text`, made of these chains, calls; it stands before it. */
void emit_value_needs(struct code *c, const struct chain *const *chains,
		      size_t count, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits C for one pixel: a chain's value operations and conversions, statement
 * by statement. emit.h for CPUs and emit_device.h for GPUs add the loops, and
 * load and store the values.
 */
#ifndef LOADER_RUN_JIT_EMIT_VALUE_H
#define LOADER_RUN_JIT_EMIT_VALUE_H

#include <stdbool.h>

#include "loader/pipeline/graph/graph.h"

struct code;

/*
 * The current value. The writer of the loop declares v0, of `type`, as an array
 * of three unless it is flat; then v1, v2, ... follow. Operands are in k.
 */
struct emit_value {
	struct code *code;
	const struct chain *chain;
	bool flat;	 /* a lane of a flat kernel, loader/run/jit/kernel.h */
	enum dtype type; /* of the current value */
	unsigned value;	 /* number in its name */
	/*
	 * An operation that leaves bytes ends a loop, whose variable is i: the
	 * floats are stored, to be limited all at once. Compilers do not
	 * vectorize a loop that limits values in its middle, as they make
	 * branches of that, and are slow in narrowing them at its end.
	 */
	unsigned loop; /* how often a loop runs; 0: there is none */
};

/*
 * Emits the whole chain. A final conversion to float16 or bfloat16 is left to the writer,
 * which may have a faster way: then the value is float. In loops, so are bytes
 * of a last operation.
 */
void emit_value_put(struct emit_value *w);

/* Whether loops follow others. The function declares `real` and `whole`, for
   the floats and bytes of all values of all channels. */
bool emit_value_has_loops(const struct chain *chain);

/* Whether the chain ends with float16 or bfloat16, or with bytes of an operation. */
bool emit_value_has_halves(const struct chain *chain);
bool emit_value_has_wholes(const struct chain *chain);

/* Numbers of a value: one at a time in a flat kernel. */
unsigned emit_value_channels(const struct emit_value *w);

/* "v2", or of a pixel "v2[1]". */
const char *emit_value_spell(const struct emit_value *w, unsigned channel,
			     char out[static 32]);

bool emit_value_uses(const struct chain *chain, const struct op *op);

/*
 * Emits all functions that `text`, made of these chains, calls. They go before
 * it.
 */
void emit_value_needs(struct code *c, const struct chain *const *chains,
		      size_t count, const char *text);

#endif

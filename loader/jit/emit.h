/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of operations -> C: one function (loader/jit/kernel.h) that does all
 * that comes after geometry. Value operations bring their own text; here are
 * the loops around them, and what makes one type another, to the bit as
 * dtype_convert() and tail's tables do.
 *
 * All that a chain's arguments say comes as operands at run time, so chains of
 * the same operations and types are the same text, whatever their numbers: it
 * is compiled once, and a few texts (prebuilt.h) serve most pipelines.
 */
#ifndef LOADER_JIT_EMIT_H
#define LOADER_JIT_EMIT_H

#include <stdbool.h>

#include "loader/graph/graph.h"

/* Whether its kernel is flat: no operation needs a pixel's three values. */
bool emit_is_flat(const struct chain *chain);

/*
 * For a chain whose source is an image and whose own operations are loaded.
 * The caller frees the text; NULL: no memory.
 */
char *emit_chain(const struct chain *chain);

/* Several under other names than KERNEL_NAME, for after loader/jit/kernel.h. */
char *emit_chains(const struct chain *const *chains, const char *const *names,
		  size_t count);

/* Of a text, for finding, not for trusting. */
void emit_hash(const char *text, uint64_t out[static 2]);

#endif

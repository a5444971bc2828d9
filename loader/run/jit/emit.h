/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a chain of operations into C: one function (loader/run/jit/kernel.h)
 * for everything after geometry. Value operations provide their own code. This
 * room adds the loops, and the conversions of types, to the bit as
 * dtype_convert() and the tables of loader/run/jit/pointwise make them.
 *
 * All arguments of a chain become operands at run time. Chains of the same
 * operations and types are the same text, whatever their numbers; it is
 * compiled once. A few texts (prebuilt.h) serve most pipelines.
 */
#ifndef LOADER_RUN_JIT_EMIT_H
#define LOADER_RUN_JIT_EMIT_H

#include <stdbool.h>

#include "loader/pipeline/graph/graph.h"

/* Whether its kernel is flat: no operation needs a pixel's three values. */
bool emit_is_flat(const struct chain *chain);

/*
 * Emits the kernel of a chain whose source is an image and whose custom
 * operations are loaded. The caller frees the text; NULL: no memory.
 */
char *emit_chain(const struct chain *chain);

/*
 * Emits several kernels under other names than KERNEL_NAME, to follow
 * loader/run/jit/kernel.h.
 */
char *emit_chains(const struct chain *const *chains, const char *const *names,
		  size_t count);

/* A hash of a text, for lookups, not for security. */
void emit_hash(const char *text, uint64_t out[static 2]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for pointwise stages, compiled at run time. A kernel comes from the
 * cache at once, or a thread runs the compiler; meanwhile the definitions make
 * the same rows. If there is no definition, the caller waits. Pointwise stages
 * of equal code share it.
 *
 * $BETON_JIT: `background' as above, `wait': the caller always waits, `off':
 * only kernels of the library. $BETON_DUMP=1 writes the code to stderr.
 */
#ifndef LOADER_RUN_JIT_JIT_H
#define LOADER_RUN_JIT_JIT_H

#include "loader/run/jit/pointwise.h"

struct jit;
struct log;

struct jit_options {
	struct log *log;
	/* As in struct beton_loader_options. */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
};

/* -EINVAL: BETON_JIT has an unknown value, which is logged. */
int jit_open(const struct jit_options *options, struct jit **out);

/*
 * Gives a pointwise stage that has its text a kernel, unless it has one or
 * needs none. One thread at a time calls this. The pointwise stage must outlive
 * `jit`. -ECANCELED: it was interrupted. Otherwise fails only for pointwise
 * stages without a definition. Then *messages, if it is not NULL, is the
 * compiler's output or the reason; the caller frees it.
 */
int jit_add(struct jit *jit, struct pointwise *stage, char **messages);

/* Ends the compiler, and unloads all kernels. No pointwise stage may be
 * running. */
void jit_close(struct jit *jit);

#endif

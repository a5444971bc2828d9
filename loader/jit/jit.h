/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for tails, compiled at run time. A kernel comes from the cache at
 * once, or a thread runs the compiler; meanwhile the definitions make the same
 * rows. If there is no definition, the caller waits. Tails of equal code share
 * it.
 *
 * $BETON_JIT: `background' as above, `wait': the caller always waits, `off':
 * only kernels of the library. $BETON_DUMP=1 writes the code to stderr.
 */
#ifndef LOADER_JIT_JIT_H
#define LOADER_JIT_JIT_H

#include "loader/jit/tail.h"

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
 * Gives a tail that has its text a kernel, unless it has one or needs none. One
 * thread at a time calls this. The tail must outlive `jit`. -ECANCELED: it was
 * interrupted. Otherwise fails only for tails without a definition. Then
 * *messages, if it is not NULL, is the compiler's output or the reason; the
 * caller frees it.
 */
int jit_add(struct jit *jit, struct tail *tail, char **messages);

/* Ends the compiler, and unloads all kernels. No tail may be running. */
void jit_close(struct jit *jit);

#endif

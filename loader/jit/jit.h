/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for tails, compiled while the program runs: out of the cache at once,
 * else by the compiler in a thread of its own, during which the definitions
 * make the same rows. What has no definition is waited for. Tails of equal code
 * share it.
 *
 * $BETON_JIT: `background' as above, `wait': everything is waited for, `off':
 * only what is part of the library. $BETON_DUMP=1 writes the code to stderr.
 */
#ifndef LOADER_JIT_JIT_H
#define LOADER_JIT_JIT_H

#include "loader/jit/tail.h"

struct jit;
struct log;

/* -EINVAL: BETON_JIT makes no sense, told to the log. */
int jit_open(struct log *log, struct jit **out);

/*
 * A kernel for a tail that has its text, unless it has one or needs none; by
 * one thread at a time. The tail must outlive `jit`. Fails only for tails that
 * have no definition, and then *messages, if it is not NULL, is what the
 * compiler wrote, or the reason; the caller frees it.
 */
int jit_add(struct jit *jit, struct tail *tail, char **messages);

/* Ends the compiler, and unloads all kernels: no tail may be running. */
void jit_close(struct jit *jit);

#endif

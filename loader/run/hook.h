/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch callback: a function of the user that changes each batch before it
 * is ready. The user may set it after the loader was opened. Workers with a
 * finished batch wait until then.
 *
 * Threads: all functions may be called from any thread. The hook's lock is not
 * held while the callback runs.
 */
#ifndef LOADER_RUN_HOOK_H
#define LOADER_RUN_HOOK_H

#include "loader/util/stages.h"

struct hook;

int hook_open(struct hook **out);
/* Takes NULL. */
void hook_close(struct hook *h);

/* As beton_loader_hook(). NULL is a callback that does nothing. */
int hook_set(struct hook *h, beton_hook_fn *run, void *arg);
/* Ends all waits for a callback. Takes NULL. */
void hook_stop(struct hook *h);

/* Runs the callback on a complete batch. Counts its time in the thread's lane
   and adds it to *busy_ns. `why` receives the callback's message, or the empty
   text. -ECANCELED: hook_stop() came before hook_set(). */
int hook_run(struct hook *h, const struct beton_batch *batch, struct lane *lane,
	     uint64_t *busy_ns, char *why, size_t size);

#endif

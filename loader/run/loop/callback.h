/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch callback: a function of the user that can change each batch before
 * it is ready. The user may set it after the open. Until then, workers with a
 * finished batch wait.
 *
 * Threads: any thread may call any function. No lock is held while the user's
 * function runs.
 */
#ifndef LOADER_RUN_LOOP_CALLBACK_H
#define LOADER_RUN_LOOP_CALLBACK_H

#include "loader/util/stages.h"

struct callback;

int callback_open(struct callback **out);
/* Takes NULL. */
void callback_close(struct callback *h);

/* Implements beton_loader_set_callback(). NULL: batches pass unchanged. */
int callback_set(struct callback *h, beton_callback_fn *run, void *arg);
/* Ends all waits for a callback. Takes NULL. */
void callback_stop(struct callback *h);

/* Runs the callback on a complete batch. Counts its time in the thread's lane
   and adds it to *busy_ns, in nanoseconds. `why` receives the callback's
   message, or "". Returns the callback's error, or -ECANCELED if
   callback_stop() is called before callback_set(). */
int callback_run(struct callback *h, const struct beton_batch *batch,
		 struct stage_lane *lane, uint64_t *busy_ns, char *why,
		 size_t size);

#endif

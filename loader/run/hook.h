/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user does to each batch before it is ready, once it is known:
 * workers that have a batch for it wait until then.
 *
 * Threads: any, its lock guards it; it is not held while the hook runs.
 */
#ifndef LOADER_RUN_HOOK_H
#define LOADER_RUN_HOOK_H

#include "loader/util/stages.h"

struct hook;

int hook_open(struct hook **out);
/* Takes NULL. */
void hook_close(struct hook *h);

/* As beton_loader_hook(). */
int hook_set(struct hook *h, beton_hook_fn *run, void *arg);
/* Nobody waits any more. Takes NULL. */
void hook_stop(struct hook *h);

/*
 * Does it to a batch that is complete, and counts that in the thread's lane;
 * *busy_ns is increased. `why` receives what the hook said, or nothing.
 * -ECANCELED: it was stopped before it was known what to do.
 */
int hook_run(struct hook *h, const struct beton_batch *batch, struct lane *lane,
	     uint64_t *busy_ns, char *why, size_t size);

#endif

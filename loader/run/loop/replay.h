/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays batches, to measure the consumer alone. The loader caches its first
 * steps. Each later step shares the tensors of a cached step, but has its own
 * number, ids and row count.
 *
 * A cached step never changes. Close it after all steps that share its tensors.
 * Each phase of the pipeline has its own cached steps, so that shapes change as
 * without the replay.
 *
 * Threads: unless a function documents otherwise, the caller holds a lock that
 * guards the replay.
 */
#ifndef LOADER_RUN_LOOP_REPLAY_H
#define LOADER_RUN_LOOP_REPLAY_H

#include "loader/run/feed/synthetic_text.h"
#include "loader/run/loop/step.h"

struct replay;

/* Opens the replay that `synthetic` requests, or sets *out to NULL if it
   requests none. If `synthetic` has no size, the replay caches as many batches
   per phase as a ring with this prefetch depth uses. Spec and phases must
   outlive the replay. */
int replay_open(const struct synthetic *synthetic, const struct spec *spec,
		const struct phases *phases, uint32_t prefetch,
		struct replay **out);
/* Frees the replay, but not the cached steps. Takes NULL. */
void replay_close(struct replay *r);

/* Whether the loader may begin a batch of this epoch. `making` is the number of
   unfinished steps that share no tensors. */
bool replay_may_begin(const struct replay *r, uint64_t epoch, uint32_t making);

/* Returns the cached step to replay for a batch of this epoch, or NULL if the
   loader must make the batch. */
const struct step *replay_next(struct replay *r, uint64_t epoch);

/* Caches a finished step, if the replay needs another one, and returns whether
   it did. Ignores shorter last batches. */
bool replay_add(struct replay *r, struct step *s);

/* Fills a step from a cached step. A `number` at or above the length of the
   epoch is padding. Called without the lock. Returns -ENOMEM or -EIO. */
int replay_fill(const struct replay *r, struct step *s, const struct step *of,
		uint64_t epoch, uint64_t number);

#endif

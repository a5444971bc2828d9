/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of batches, to measure the consumer alone: the loader keeps its first
 * steps, and later steps share the tensors of a kept one. They have numbers,
 * ids and row counts of their own.
 *
 * A kept step never changes. It is closed after all steps that share its
 * tensors. Each phase of the pipeline has kept steps of its own, so that shapes
 * change as they would without the replay.
 *
 * Threads: unless a function documents otherwise, the caller holds a lock that
 * guards the replay.
 */
#ifndef LOADER_RUN_REPLAY_H
#define LOADER_RUN_REPLAY_H

#include "loader/feed/synthetic_text.h"
#include "loader/run/step.h"

struct replay;

/* Opens the replay that `synthetic` asks for; *out is NULL if it asks for none.
   Without a size in `synthetic`, keeps as many batches per phase as a ring with
   this prefetch depth has in use. Spec and phases must outlive the replay. */
int replay_open(const struct synthetic *synthetic, const struct spec *spec,
		const struct phases *phases, uint32_t prefetch,
		struct replay **out);
/* Does not close the kept steps. Takes NULL. */
void replay_close(struct replay *r);

/* Whether a batch of this epoch may be begun. `making` is the number of steps
   in the making that share no tensors. */
bool replay_may_begin(const struct replay *r, uint64_t epoch, uint32_t making);

/* The kept step to replay for a batch of this epoch, or NULL if the batch is to
   be made. */
const struct step *replay_next(struct replay *r, uint64_t epoch);

/* Keeps a step that was just made, if another one is needed, and returns
   whether it did. Shorter last batches are not kept. */
bool replay_keep(struct replay *r, struct step *s);

/* Fills a step from a kept one. A `number` at or above the length of the epoch
   is padding. Without the lock. -ENOMEM, -EIO */
int replay_fill(const struct replay *r, struct step *s, const struct step *of,
		uint64_t epoch, uint64_t number);

#endif

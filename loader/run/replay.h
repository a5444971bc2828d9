/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps whose batches are given again and again, for measuring what comes after
 * the loader. The first that are made are kept, as they are, and later ones
 * borrow their tensors; numbers, ids and how many rows there are, are their
 * own.
 *
 * A kept step is never written again, and closed after all that borrow. Steps
 * are kept of every phase of the pipeline: shapes change as they would.
 *
 * Threads: the caller's lock, unless said.
 */
#ifndef LOADER_RUN_REPLAY_H
#define LOADER_RUN_REPLAY_H

#include "loader/feed/fake_text.h"
#include "loader/run/step.h"

struct replay;

/*
 * As the fake says; *out is NULL where it says nothing of that. Without a size,
 * as many batches are kept of each phase as a ring with this prefetch has in
 * use. Spec and phases are borrowed.
 */
int replay_open(const struct fake *fake, const struct spec *spec,
		const struct phases *phases, uint32_t prefetch,
		struct replay **out);
/* The steps are the caller's. Takes NULL. */
void replay_close(struct replay *r);

/* Whether a batch of this epoch may be begun, while so many are being made that
   do not borrow. */
bool replay_may_begin(const struct replay *r, uint64_t epoch, uint32_t making);

/* Of whom a batch of this epoch is to borrow; NULL: it is to be made. */
const struct step *replay_next(struct replay *r, uint64_t epoch);

/* Whether a step that was made is kept from now on. Short ones are not. */
bool replay_keep(struct replay *r, struct step *s);

/*
 * Makes a whole step of one that is kept. `number` at or above the length of
 * the epoch: padding. Without the lock. -ENOMEM, -EIO
 */
int replay_fill(const struct replay *r, struct step *s, const struct step *of,
		uint64_t epoch, uint64_t number);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the batches of a ring: how much is resident while batches are
 * made, and what goes back to the system afterwards.
 *
 * A turn of large batches needs memory for its first rows, the head, when
 * workers begin it, and for all others, the body, when they get there. So
 * workers that have begun all rows of a batch begin the next one, but only its
 * head, until the user takes a batch. When the user releases one, its body
 * moves to the batch in the making, and its head is the memory of a later head.
 * The memory is therefore that of the batches that the user holds, of
 * `complete` batches, and of a head.
 *
 * While the user requests no batches, for example between two epochs, the ring
 * is idle: memory of free turns goes back to the system, also that of
 * prefetched batches. The next call begins them again, and makes the same bits.
 * The ring is idle after a second, or later if batches were taken more rarely.
 *
 * The caller holds ring->lock.
 */
#ifndef LOADER_RUN_RING_RESIDENCE_H
#define LOADER_RUN_RING_RESIDENCE_H

#include "loader/run/ring/turns.h"

/* Returns the oldest turn of which workers may take rows, or NULL. */
struct turn *residence_find_rows(const struct ring *ring);

/* Returns how many of `n` rows a worker may take from such a turn. */
uint32_t residence_limit(const struct ring *ring, const struct turn *t,
			 uint32_t n);

/* Grants a turn the memory of the rows that workers have taken: a head, and if
   need be a body. Releases the lock meanwhile. */
void residence_grant(struct ring *ring, struct turn *t);

/* Notes that the user waited for a turn. If users wait for turns of which
   workers made the head, and then had to wait themselves, more memory is
   faster. */
void residence_note_wait(struct ring *ring, const struct turn *t, uint64_t ns);
/* Notes that the user has got a batch. */
void residence_note_delivery(struct ring *ring);
/* Notes that the user releases a batch. */
void residence_note_release(struct ring *ring);
/* Forgets all notes, but not whether the last whole window of batches lost much
   time: epochs may be short, with a pause after each. */
void residence_reset(struct ring *ring);

/* Waits for work, until a turn may get its body at the latest, and adds the
   nanoseconds to a counter that only the calling thread writes. */
void residence_wait(struct ring *ring, atomic_uint_fast64_t *counter);

/* Enclose each call of a user who asks for a batch. An idle ring is busy again.
 */
void residence_begin_call(struct ring *ring);
void residence_end_call(struct ring *ring);
/* Returns when to call residence_trim(), as a time of stage_now_ns(); 0: not
   before the next call. */
uint64_t residence_trims_at(const struct ring *ring);
/* Frees memory, and the ring is idle. Only for the fetching thread, which has
   no turn. */
void residence_trim(struct ring *ring);

#endif

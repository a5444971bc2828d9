/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the turns of a trainer among its own workers and its makers: loaders
 * on other machines that make the same batches.
 *
 * The fetching thread queues turns in the order of delivery. Each maker has a
 * link, run by a thread of the user, which takes the oldest queued turn
 * whenever its maker has room. The fetching thread takes turns for the loader's
 * own workers, before the makers: their batches need no network. If a link
 * fails, its turns are queued again.
 *
 * If the user waits for a batch that a maker should have sent long ago, it is
 * stalled: another side makes it as well, in a turn with the same place in the
 * order. If that is a maker that stalls too, the own workers make the batch.
 * The first turn that is done is delivered, and all have the same bits. While
 * all makers are late, the own workers do not rest.
 *
 * The caller holds ring->lock.
 */
#ifndef LOADER_RUN_RING_MAKERS_H
#define LOADER_RUN_RING_MAKERS_H

#include "loader/run/ring/turns.h"

void makers_init(struct makers *m);
void makers_fini(struct makers *m);

/* Whether the loader's own workers have room for a queued turn. */
bool makers_wants_local(const struct ring *ring);
/* For the fetching thread: takes a turn for the own workers, or returns NULL.
   Its state is TURN_FETCHING. */
struct turn *makers_take_local(struct ring *ring);

/* For a link: takes a turn for its maker, appends it to link->turns, and
   returns true. Its state is TURN_REMOTE. */
bool makers_take(struct ring *ring, struct link *link);
/* For a link: its oldest turn is received, and the own workers finish its
   rows. */
void makers_received(struct ring *ring, struct link *link, uint64_t bytes);
/* For a link: its maker refused the oldest turn, so that only the own workers
   may make it. */
void makers_refused(struct ring *ring, struct link *link);

void makers_add(struct ring *ring, struct link *link);
/* The sides of the link have greeted each other. */
void makers_ready(struct ring *ring, struct link *link);
/* Queues all turns of the link again. */
void makers_remove(struct ring *ring, struct link *link);
/* Makes all links fail, and waits until they are removed. */
void makers_stop(struct ring *ring);

/* For the user's thread, while it waits: marks the links that are late, and the
   turn that it waits for as stalled, if it is. */
void makers_look(struct ring *ring);

#endif

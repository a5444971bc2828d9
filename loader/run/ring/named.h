/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that the user asks for by name, an epoch and a number. They are turns
 * of the ring as others are, but have no place in its order of delivery.
 * The calls of the user are those of ring.h.
 *
 * At most `prefetch` of them are in the making or wait to be taken. Names
 * beyond that wait for the fetching thread. The caller holds ring->lock.
 */
#ifndef LOADER_RUN_RING_NAMED_H
#define LOADER_RUN_RING_NAMED_H

#include "loader/run/ring/turns.h"

/* Adds a name, unless it waits already. */
void named_add(struct ring *ring, uint64_t epoch, uint64_t number);
/* Moves a name to the front or adds it there, and makes room for its batch: if
   `prefetch` others are begun, drops the oldest one that is complete. */
void named_hurry(struct ring *ring, uint64_t epoch, uint64_t number);
/* Returns the turn of a batch that was begun and not taken, or NULL. */
struct turn *named_find(struct ring *ring, uint64_t epoch, uint64_t number);

/* For the fetching thread: whether it may begin a turn for a name, and
   the name. */
bool named_may_begin(const struct ring *ring);
struct name named_begin(struct ring *ring);

#endif

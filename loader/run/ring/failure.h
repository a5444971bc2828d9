/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of failed batches and of a ring that cannot continue.
 */
#ifndef LOADER_RUN_RING_FAILURE_H
#define LOADER_RUN_RING_FAILURE_H

#include "loader/run/ring/turns.h"

enum { FAILURE_WHY_SIZE = 600 };

/* Writes the message of an error to `out`. If the GPU failed, writes its
   driver's message. The caller may hold the lock or not. */
void failure_explain(const struct ring *ring, int error, bool by_device,
		     char *out, size_t size);

/* Write the message of ring_next() for a failed batch. Only for the thread that
   works on the turn, without the lock. */
void failure_note_reason(const struct ring *ring, struct turn *t,
			 uint64_t epoch, uint64_t number, const char *why);
void failure_note(const struct ring *ring, struct turn *t, uint64_t epoch,
		  uint64_t number, int error, bool by_device);

#endif

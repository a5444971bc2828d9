/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads. Each takes a few rows of the oldest turn that has rows
 * left, and runs them without the lock. The worker that finishes a turn's last
 * row also runs the user's batch callback and starts the upload.
 */
#ifndef LOADER_RUN_RING_WORKERS_H
#define LOADER_RUN_RING_WORKERS_H

#include "loader/run/ring/turns.h"

/* Starts the threads. On failure some threads may run; workers_join() waits for
   them. The caller frees ring->workers. */
int workers_start(struct ring *ring);
/* Waits for all threads. Set ring->stopping before, and call it without the
   lock. */
void workers_join(struct ring *ring);

#endif

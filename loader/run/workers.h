/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads. Each takes a few rows of the oldest turn that has any
 * left and runs them without the lock. The worker that finishes a turn's last
 * row also runs the user's batch callback and starts the upload.
 */
#ifndef LOADER_RUN_WORKERS_H
#define LOADER_RUN_WORKERS_H

#include "loader/run/turns.h"

/* After an error, workers_join() ends the threads that did start. The caller
   frees ring->workers. */
int workers_start(struct ring *ring);
/* After ring->stopping is set, without the lock. */
void workers_join(struct ring *ring);

#endif

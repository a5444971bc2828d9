/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetching thread. If the ring has room, it begins the next turn of this
 * rank. It fetches the turn's batch file without the lock and passes the turn
 * to the workers. If the turn shares the tensors of a cached step, the thread
 * finishes it alone.
 */
#ifndef LOADER_RUN_RING_FETCHER_H
#define LOADER_RUN_RING_FETCHER_H

#include "loader/run/ring/turns.h"

int fetcher_start(struct ring *ring);
/* Waits for the thread and sends a last report to the daemon. Does nothing if
   no thread runs. Set ring->stopping before, and call it without the lock. */
void fetcher_join(struct ring *ring);

#endif

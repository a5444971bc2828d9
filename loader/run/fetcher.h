/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetching thread. It begins the next turn of this rank whenever the ring
 * has room, fetches the turn's batch file without the lock, and passes the turn
 * to the workers. A turn that borrows from a kept one it finishes by itself.
 */
#ifndef LOADER_RUN_FETCHER_H
#define LOADER_RUN_FETCHER_H

#include "loader/run/turns.h"

int fetcher_start(struct ring *ring);
/* After ring->stopping is set, without the lock. Reports the last figures to
   the daemon. Does nothing if no thread runs. */
void fetcher_join(struct ring *ring);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a link between a trainer and a maker. Each call runs its end in
 * the calling thread until the link ends. The caller closes the socket
 * afterwards.
 */
#ifndef LOADER_RUN_LINK_LINK_H
#define LOADER_RUN_LINK_LINK_H

#include "loader/run/link/wire.h"
#include "loader/run/ring/ring.h"

/* Takes turns for a maker, and receives their batches. Returns -ECANCELED when
   the ring stops, and otherwise the error that ended the link. `why` receives
   the reason. Call it in a thread of its own for each maker. */
int link_run(struct ring *ring, int fd, const struct wire_hello *hello,
	     char why[WIRE_MESSAGE_SIZE]);

/* Makes batches for a trainer. Returns 0 after the trainer has closed the link.
   No other thread may ask the ring for batches. */
int link_serve(struct ring *ring, int fd, const struct wire_hello *hello,
	       char why[WIRE_MESSAGE_SIZE]);

#endif

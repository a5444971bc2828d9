/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of this rank that the loader reports to the daemon, for
 * beton-stats(7). For the fetching thread, and for whoever has joined it; both
 * functions run without the ring's lock.
 */
#ifndef LOADER_RUN_TOLD_H
#define LOADER_RUN_TOLD_H

#include "loader/run/turns.h"

/* Reports the figures, unless the trainer got no batch since the last report.
   A feed without a daemon ignores them. */
void told_send(struct ring *ring);
/* The same, at most once a second. */
void told_send_if_due(struct ring *ring);

#endif

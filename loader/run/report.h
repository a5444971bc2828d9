/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of this rank's figures to the daemon, which publishes them
 * (beton-stats(7)). Only the fetching thread, or the thread that has joined it,
 * calls these functions. They do not take the ring's lock.
 */
#ifndef LOADER_RUN_REPORT_H
#define LOADER_RUN_REPORT_H

#include "loader/run/turns.h"

/* Sends a report if the trainer got a batch since the last one. Does nothing if
   the feed has no daemon. */
void report_send(struct ring *ring);
/* Calls report_send() if the last report is at least a second old. */
void report_send_if_due(struct ring *ring);

#endif

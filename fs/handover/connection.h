/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of one loader: its requests, and the slots that it holds. For
 * handover.c alone, whose thread makes all calls; only requests end on threads
 * of the engine.
 */
#ifndef FS_HANDOVER_CONNECTION_H
#define FS_HANDOVER_CONNECTION_H

#include "fs/handover/peer.h"
#include "fs/handover/shared.h"

/* If it succeeds, there is one more in shared->connections, which owns the
   socket. */
int connection_open(struct handover_shared *shared, int fd,
		    const struct peer *peer);
/* Cancels all requests and abandons all slots. */
void connection_close(struct connection *connection);

/* Reads messages; may close the connection. */
void connection_read(struct connection *connection);

/* Closes connections that have been silent for too long. Returns milliseconds
   until it should be called again, or -1 if no connection has to be watched. */
int connections_expire(struct handover_shared *shared);

unsigned connections_of(const struct handover_shared *shared, uid_t uid);
/* How many fit into their part of the budget. */
uint64_t connections_most(const struct handover_shared *shared);

/* Answers all finished requests; may close connections. */
void connections_answer(struct handover_shared *shared);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of one loader: its requests, and the slots that it holds. For
 * zerocopy.c alone, whose thread makes all calls; only requests end on threads
 * of the engine.
 */
#ifndef FS_MOUNT_ZEROCOPY_CONNECTION_H
#define FS_MOUNT_ZEROCOPY_CONNECTION_H

#include "fs/mount/zerocopy/peer.h"
#include "fs/mount/zerocopy/shared.h"

/* On success, adds a connection to shared->connections, which owns the
   socket. */
int connection_open(struct zerocopy_shared *shared, int fd,
		    const struct peer *peer);
/* Cancels all requests and abandons all slots. */
void connection_close(struct connection *connection);

/* Reads messages; may close the connection. */
void connection_read(struct connection *connection);

/* Closes connections that have been silent for too long. Returns the
   milliseconds until it must be called again, or -1 if every connection has
   sent its HELLO. */
int connections_expire(struct zerocopy_shared *shared);

unsigned connections_of(const struct zerocopy_shared *shared, uid_t uid);
/* Returns the number of connections that fit into their part of the budget. */
uint64_t connections_most(const struct zerocopy_shared *shared);

/* Answers all finished requests; may close connections. */
void connections_answer(struct zerocopy_shared *shared);

#endif

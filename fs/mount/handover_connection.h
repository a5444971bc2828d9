/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loader at the hand-over socket: what it asked for, what it holds. For
 * handover.c alone; all but the ends of requests happens on its thread.
 */
#ifndef FS_MOUNT_HANDOVER_CONNECTION_H
#define FS_MOUNT_HANDOVER_CONNECTION_H

#include <pthread.h>

#include "fs/metrics/jobs.h"
#include "fs/mount/handover_peer.h"
#include "fs/namespace/ns.h"

struct connection;
struct request;

/* What all connections share. */
struct handover_shared {
	struct ns *ns;
	struct log *log;
	int events; /* an eventfd: wakes the thread */
	uint64_t max_bytes;
	struct jobs *jobs;
	/* The thread's own. */
	uint64_t bytes; /* of slots held, or asked for */
	struct connection *connections;
	struct request *given_up; /* under way, for nobody any more */
	unsigned num_connections;
	/* handover.lock */
	pthread_mutex_t lock;
	struct request *done; /* guarded by it */
};

/* Takes the socket over, and is in shared->connections, if it succeeds. */
int connection_open(struct handover_shared *shared, int fd,
		    const struct peer *peer, struct connection **out);
/* Gives up and puts everything. */
void connection_close(struct connection *connection);

/* Messages are there; afterwards the connection may be gone. */
void connection_read(struct connection *connection);

/* When all are closed: waits for what they gave up. */
void connections_wait(struct handover_shared *shared);

/* Answers all requests that are done; connections may go. */
void connections_answer(struct handover_shared *shared);

void handover_wake(const struct handover_shared *shared);

#endif

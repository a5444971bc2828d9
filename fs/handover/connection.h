/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of one loader: its requests, and the slots that it holds. For
 * handover.c alone, whose thread makes all calls; only requests end on threads
 * of the engine.
 */
#ifndef FS_HANDOVER_CONNECTION_H
#define FS_HANDOVER_CONNECTION_H

#include <pthread.h>

#include "fs/handover/peer.h"
#include "fs/metrics/jobs.h"
#include "fs/namespace/ns.h"

struct connection;
struct request;

/* State that all connections share. */
struct handover_shared {
	struct ns *ns;
	struct log *log;
	int epoll;  /* has each connection's socket, with a pointer to it */
	int events; /* an eventfd: wakes the thread */
	uint64_t max_bytes;
	struct budget *budget; /* users pin in it the bytes they hold */
	struct jobs *jobs;
	/* For the thread alone. */
	uint64_t bytes; /* of slots that are held or requested */
	struct connection *connections;
	struct request *given_up; /* running, and their loaders are gone */
	unsigned num_connections;
	unsigned num_strangers; /* connections without a HELLO */
	int64_t hello_ms;	/* that they may stay without one */
	/* handover.lock */
	pthread_mutex_t lock;
	struct request *done; /* guarded by it */
};

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

/* Waits for canceled requests that still run, after all connections closed. */
void connections_wait(struct handover_shared *shared);

/* Answers all finished requests; may close connections. */
void connections_answer(struct handover_shared *shared);

void handover_wake(const struct handover_shared *shared);

#endif

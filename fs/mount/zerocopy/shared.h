/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FS_MOUNT_ZEROCOPY_SHARED_H
#define FS_MOUNT_ZEROCOPY_SHARED_H

#include <pthread.h>

#include "fs/base/metrics/jobs.h"
#include "fs/mount/namespace/ns.h"

struct connection;
struct zerocopy_request;

struct requests {
	struct zerocopy_request *list; /* in the order of the GETs */
	unsigned n;
};

/* State that all connections share. */
struct zerocopy_shared {
	struct ns *ns;
	struct log *log;
	int epoll;  /* has each connection's socket, with a pointer to it */
	int events; /* an eventfd: wakes the thread */
	uint64_t max_bytes;
	struct budget *budget; /* the bytes that users hold are pinned in it */
	struct jobs *jobs;
	/* The members below belong to the thread. */
	uint64_t bytes; /* of slots that are held or requested */
	struct connection *connections;
	struct requests
		given_up; /* running, and their loaders have disconnected */
	unsigned num_connections;
	unsigned num_strangers; /* connections without a HELLO */
	int64_t hello_ms; /* milliseconds that they may stay without one */
	/* zerocopy.lock */
	pthread_mutex_t lock;
	struct zerocopy_request *done; /* guarded by it */
};

void zerocopy_wake(const struct zerocopy_shared *shared);

#endif

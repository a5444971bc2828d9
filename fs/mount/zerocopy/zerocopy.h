/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of zero-copy delivery. Loaders connect to an abstract Unix
 * socket, acquire the memory in which batches were collated, and release it by
 * message or by closing the socket. If the daemon is killed, no file remains.
 *
 * Peers are untrusted, and every message is checked. A peer may acquire the
 * batches whose files the kernel permits it to read. The daemon closes the
 * connection of a peer that breaks the protocol.
 *
 * One thread does all work. The engine's threads only pass finished batches to
 * it, under zerocopy.lock; no lock is taken after that lock.
 */
#ifndef FS_MOUNT_ZEROCOPY_ZEROCOPY_H
#define FS_MOUNT_ZEROCOPY_ZEROCOPY_H

#include "fs/base/metrics/jobs.h"
#include "fs/mount/namespace/ns.h"

enum {
	/* Connections of all users; fewer if the budget is small. One user gets
	   half of the free connections. */
	ZEROCOPY_CONNECTIONS_MAX = 512,
	ZEROCOPY_NAME_SIZE = 64,
};

/* Users besides the daemon's own whom the kernel admits to the mount. */
enum zerocopy_allow {
	ZEROCOPY_ALLOW_ROOT,  /* root, with all options */
	ZEROCOPY_ALLOW_OTHER, /* and users with the permissions */
};

struct zerocopy_options {
	struct log *log;
	enum zerocopy_allow allow;
	/* Bytes that loaders may hold at a time. If a request exceeds them, it
	   fails and the loader reads the file. */
	uint64_t max_bytes;
	struct budget *budget; /* or NULL: without a share for each user */
	struct jobs *jobs;     /* where batches are counted, or NULL */
	/* Milliseconds that a peer may stay silent after it has connected;
	   tests set it. 0: 2000. */
	unsigned hello_ms;
};

struct zerocopy;

/* Listens, and answers no connection yet. */
int zerocopy_open(const struct zerocopy_options *options,
		  struct zerocopy **out);
/* Releases all slots and cancels all requests. Call it before the namespace and
   the engine close. Accepts NULL. */
void zerocopy_close(struct zerocopy *zerocopy);

/* Returns the address without the leading NUL of abstract addresses. */
const char *zerocopy_name(const struct zerocopy *zerocopy);

/* Starts to answer connections. The namespace must stay open until
   zerocopy_close(). */
int zerocopy_serve(struct zerocopy *zerocopy, struct ns *ns);

#endif

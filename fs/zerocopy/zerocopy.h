/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of zero-copy delivery. Loaders connect to an abstract Unix
 * socket, acquire the memory in which batches were collated, and release it by
 * message or by closing the socket. A daemon that is killed leaves nothing
 * behind.
 *
 * Peers are untrusted, and every message is checked. A peer may acquire the
 * batches that the kernel would let it read in the mount. The daemon closes the
 * connection of a peer that breaks the protocol.
 *
 * A thread of its own does all work. The engine's threads only pass it finished
 * batches, under zerocopy.lock, which is the last lock to take.
 */
#ifndef FS_ZEROCOPY_ZEROCOPY_H
#define FS_ZEROCOPY_ZEROCOPY_H

#include "fs/metrics/jobs.h"
#include "fs/namespace/ns.h"

enum {
	/* Of all users; fewer if the budget is small. One user gets half of
	   the places that are free. */
	ZEROCOPY_CONNECTIONS_MAX = 512,
	ZEROCOPY_NAME_SIZE = 64,
};

/* Users besides the daemon's own that the kernel lets into the mount. */
enum zerocopy_allow {
	ZEROCOPY_ALLOW_ROOT,  /* root, with all options */
	ZEROCOPY_ALLOW_OTHER, /* and users with the permissions */
};

struct zerocopy_options {
	struct log *log;
	enum zerocopy_allow allow;
	/* Bytes that loaders may hold at a time. Beyond that, requests fail
	   and loaders read files. */
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

/* The address without the leading NUL of abstract addresses. */
const char *zerocopy_name(const struct zerocopy *zerocopy);

/* Begins to answer. The namespace must outlive the zero-copy delivery. */
int zerocopy_serve(struct zerocopy *zerocopy, struct ns *ns);

#endif

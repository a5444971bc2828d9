/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zero-copy delivery, the loader's end: batches in memory that the daemon of a
 * mount shares over a socket (fs/data/wire/zerocopy_message.h). Each piece is
 * mapped once, and only if it is sealed against shrinking, so the mapping stays
 * valid when the daemon dies. The mapping is private: nothing that is written
 * to it reaches the daemon.
 *
 * One thread requests batches; any thread may release them, or cancel the wait
 * for one. client.lock guards what these threads share; no lock is taken under
 * it, and no call waits under it.
 */
#ifndef LOADER_RUN_FEED_ZEROCOPY_CLIENT_H
#define LOADER_RUN_FEED_ZEROCOPY_CLIENT_H

#include "fs/base/metrics/rank_figures.h"

struct cancel;
struct zerocopy_client;

/* The identity of a loader, for the daemon. */
struct zerocopy_client_name {
	const char *job; /* NULL: none */
	uint32_t rank;
	uint32_t world_size;
};

/* A batch file in shared memory of the daemon, until
   zerocopy_client_release(). */
struct acquired {
	const uint8_t *bytes;
	uint64_t size;
	struct mapped *mapped;
};

/* Makes a client that is broken until zerocopy_client_reopen(). -ENOMEM */
int zerocopy_client_make(const struct zerocopy_client_name *name,
			 struct zerocopy_client **out);
/* Connects to an address, "@NAME". Failures are not logged, because the caller
   can read files instead. -ECONNREFUSED; -EPERM: the daemon belongs neither to
   root nor to this user; -EPROTO and others. */
int zerocopy_client_open(const char *address,
			 const struct zerocopy_client_name *name,
			 struct zerocopy_client **out);
/* All batches have been released before, but kept ones, which stay valid until
   they are released. Takes NULL. */
void zerocopy_client_close(struct zerocopy_client *client);

/* Waits for the batch file at this path in the mount. -ENOSPC: the daemon has
   no free shared memory now. -EBUSY: the user keeps this very batch. Other
   errors concern the file, unless the
   connection is broken: then all later calls fail. -ECANCELED: `interrupted`,
   which may be NULL, is canceled, and the connection is broken. */
int zerocopy_client_get(struct zerocopy_client *client, const char *path,
			struct cancel *interrupted, struct acquired *out);
bool zerocopy_client_is_broken(const struct zerocopy_client *client);
/* Connects a broken client again, maybe to another daemon. Batches of the old
   connection stay valid until they are released. Fails as
   zerocopy_client_open() does; returns -ECANCELED if the client or
   `interrupted`, which may be NULL, is canceled. Only the thread that requests
   batches calls this. */
int zerocopy_client_reopen(struct zerocopy_client *client, const char *address,
			   struct cancel *interrupted);

/* Makes zerocopy_client_get() fail, now and later, however long the daemon does
   not answer. Any thread. */
void zerocopy_client_cancel(struct zerocopy_client *client);

/* Sends this loader's figures. The message may get lost. Does not wait. */
void zerocopy_client_report(struct zerocopy_client *client,
			    const struct rank_figures *figures);

/* Lets the user of the loader hold the batch, and write to it, for any time.
   Returns false if memory is short; then release it soon. Only the thread that
   requests batches calls this. A child of fork() has copies of kept batches. */
bool zerocopy_client_keep(struct zerocopy_client *client,
			  struct mapped *mapped);

/* Does not wait: if the daemon takes no message now, the next request sends it.
 */
void zerocopy_client_release(struct zerocopy_client *client,
			     struct mapped *mapped);

#endif

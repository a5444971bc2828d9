/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zero-copy delivery, the loader's end: batches in memory that the daemon of a
 * mount shares over a socket (fs/engine/handover_message.h). Each piece is
 * mapped once, read-only, and only if it is sealed against shrinking, so the
 * mapping stays valid when the daemon dies.
 *
 * One thread requests batches; any thread may release them. lender.lock guards
 * the mappings' counts; no lock is taken under it.
 */
#ifndef LOADER_FEED_HANDOVER_CLIENT_H
#define LOADER_FEED_HANDOVER_CLIENT_H

#include "fs/metrics/rank_figures.h"

struct lender;

/* The identity of a loader, for the daemon. */
struct lender_name {
	const char *job; /* NULL: none */
	uint32_t rank;
	uint32_t world;
};

/* A batch file in shared memory of the daemon, until lender_give_back(). */
struct loan {
	const uint8_t *bytes;
	uint64_t size;
	struct lent *lent;
};

/* Connects to an address, "@NAME". Failures are not logged, because the caller
   can read files instead. -ECONNREFUSED; -EPERM: the daemon belongs neither to
   root nor to this user; -EPROTO and others. */
int lender_open(const char *address, const struct lender_name *name,
		struct lender **out);
/* All batches have been released before. Takes NULL. */
void lender_close(struct lender *lender);

/* Waits for the batch file at this path in the mount. -ENOSPC: the daemon has
   no free shared memory now. Other errors concern the file, unless the
   connection is broken: then all later calls fail. */
int lender_get(struct lender *lender, const char *path, struct loan *out);
bool lender_is_broken(const struct lender *lender);

/* Sends this loader's figures. The message may get lost. */
void lender_tell(struct lender *lender, const struct figures *figures);

void lender_give_back(struct lender *lender, struct lent *lent);

#endif

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

/* What the daemon is told about who asks. */
struct lender_name {
	const char *job; /* NULL: none */
	uint32_t rank;
	uint32_t world;
};

/* A batch file in memory of the daemon's, until it is given back. */
struct loan {
	const uint8_t *bytes;
	uint64_t size;
	struct lent *lent;
};

/*
 * Connects to an address, "@NAME". Any failure means that there is no such way,
 * and is not worth a message: -ECONNREFUSED, -EPERM if the daemon is neither
 * root's nor this user's, -EPROTO and others.
 */
int lender_open(const char *address, const struct lender_name *name,
		struct lender **out);
/* Everything was given back before. Takes NULL. */
void lender_close(struct lender *lender);

/*
 * Waits for the batch file at this path in the mount. -ENOSPC: not now, the
 * memory is lent out; other errors are the file's own, unless the connection is
 * broken: then nothing will come any more.
 */
int lender_get(struct lender *lender, const char *path, struct loan *out);
bool lender_is_broken(const struct lender *lender);

/* What this loader has done so far. It is no matter if it does not arrive. */
void lender_tell(struct lender *lender, const struct figures *figures);

void lender_give_back(struct lender *lender, struct lent *lent);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetches of a remote, each a request on its way (attempt.h): their attempts
 * and what follows when these fail, until a fetch ends. A fetch has one attempt,
 * or two if the first one is slow. All functions run on the thread of the net.
 */
#ifndef FS_SOURCE_OBJECT_FETCH_H
#define FS_SOURCE_OBJECT_FETCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/base/util/rng.h"
#include "fs/source/keys/refusal.h"
#include "fs/source/local/net_stats.h"
#include "fs/source/local/source.h"
#include "fs/source/object/attempt.h"

/* An object, and all requests for it (remote.h). */
struct remote {
	struct object_peer peer;
	struct log *log;
	const char *name; /* for messages */
	uint64_t retry_ms;
	bool waits_to_open; /* so long, too, for the first answer */
	/* Fills in the target of an attempt, which is zero-initialized. The
	   header lines are those of the request so far. -EAGAIN: call
	   remote_wake() when there are credentials; or another -errno, with
	   the reason logged. */
	int (*aim)(struct remote *remote, const struct net_lines *headers,
		   struct attempt_target *out);
	/* An answer that is no success. Returns true if another attempt may
	   succeed, with other credentials or in another place. May be NULL. */
	bool (*refused)(struct remote *remote,
			const struct attempt_target *target,
			const struct refusal *refusal);
	/* The object was replaced: aims at the pinned version from now on.
	   Returns false if the server has no versions. May be NULL. */
	bool (*use_version)(struct remote *remote);
	void *arg;
	struct counters *reads;

	pthread_mutex_t lock; /* guards the members up to `is_closed` */
	pthread_cond_t closed;
	struct source_request *incoming;
	bool has_canceled;
	bool has_keys; /* again, by remote_wake() */
	bool is_halted;
	bool is_closing;
	bool is_closed;

	/* The thread's own. */
	struct net_task task;
	struct net_timer timer;
	struct rng rng;
	struct fetch *must; /* a thread waits */
	struct fetch *waiting;
	struct fetch *active;
	struct attempt *attempts;
	unsigned num_active;
	unsigned num_urgent; /* begun since one of `waiting` */
	unsigned num_published;
	bool has_read; /* a request has succeeded */
	bool is_stale;
	bool has_version;  /* attempts name the version */
	bool was_out;	   /* as the last turn found it */
	bool is_throttled; /* which is logged */
};

/* Begins an attempt of an active fetch, or a second one. */
void fetch_attempt(struct fetch *fetch, bool is_hedge);

/* Ends a fetch, which is on no list, with its attempts, and frees it. */
void fetch_end(struct remote *remote, struct fetch *fetch, int result);

/* Adds to a count of remote->peer. */
static inline void peer_add(atomic_uint_fast64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of one object by HTTP: a queue of requests, attempts to read them, and
 * what happens after failures. All functions run on the thread of the net,
 * except where noted.
 *
 * A request is a `fetch` of attempt.h. It has one attempt, or two if the first
 * one is slow.
 */
#ifndef FS_SOURCE_OBJECT_REMOTE_H
#define FS_SOURCE_OBJECT_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/base/util/rng.h"
#include "fs/source/keys/refusal.h"
#include "fs/source/local/net_stats.h"
#include "fs/source/local/source.h"
#include "fs/source/object/attempt.h"

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

/* Any thread, before the first request. */
void remote_init(struct remote *remote);
/* Any thread but the net's: cancels all requests and waits. */
void remote_stop(struct remote *remote);
/* The remote has been stopped. */
void remote_fini(struct remote *remote);

/* Any thread. The request lies within the object. */
void remote_submit(struct remote *remote, struct source_request *request);
void remote_cancel(struct remote *remote, struct source_request *request);

/* Any thread: ends all requests with -ECANCELED, also later ones. */
void remote_halt(struct remote *remote);

/* Any thread, until remote_fini(): begins the attempts that wait for
   credentials. */
void remote_wake(struct remote *remote);

void remote_stats(const struct remote *remote, struct source_net_stats *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of one object by HTTP: a queue of requests, attempts to read them, and
 * what happens after failures. All functions run on the thread of the net,
 * except where noted.
 *
 * A request is a `fetch` here. It has one attempt, or two if the first one is
 * slow. An attempt is an HTTP transfer that begins at the byte that the fetch
 * has reached. It lives until the net has ended it, also if its fetch has ended
 * before.
 */
#ifndef FS_SOURCE_REMOTE_H
#define FS_SOURCE_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/keys/refusal.h"
#include "fs/net/net.h"
#include "fs/remote/depth.h"
#include "fs/remote/outage.h"
#include "fs/remote/pin.h"
#include "fs/remote/tail.h"
#include "fs/source/net_stats.h"
#include "fs/source/scatter.h"
#include "fs/source/source.h"
#include "fs/util/rng.h"

struct attempt;
struct remote;

enum { REMOTE_LINES_MAX = 16 };

/* Where an attempt goes; the owner of the remote fills it in. */
struct remote_target {
	char *url;	      /* belongs to the attempt */
	const char *userinfo; /* NULL: none */
	bool netrc;
	/* Lines that only its host may see. They belong to the attempt. */
	char *secrets[REMOTE_LINES_MAX];
	size_t num_secrets;
	uint64_t keys; /* the version of the credentials */
	bool stays;    /* follows no redirect */
};

struct remote_counts {
	atomic_uint_fast64_t requests, connections, retries, stalls, hedges,
		hedge_bytes, throttled, wire_bytes, payload_bytes, failures;
	/* Copies for other threads. */
	atomic_uint_fast64_t rate, latency_ns, p50_ns, p99_ns, target, best;
	atomic_uint in_flight, waiting, depth;
	atomic_bool is_stale, is_out;
	atomic_int last_error;
};

/* Limits, for tests shorter than the defaults. 0: the default. */
struct remote_limits {
	unsigned connect_ms;	/* 5000 */
	unsigned first_byte_ms; /* the least; 1000 */
	unsigned stall_ms;	/* the least; 1000 */
};

/* A request on its way. */
struct fetch {
	struct remote *remote;
	struct source_request *request;
	struct fetch *prev, *next;
	struct scatter memory;
	uint64_t off;
	uint64_t size; /* to read: less than requested at the end */
	uint64_t got;
	int64_t begin_ns;  /* when its first attempt began; 0: it waits */
	int64_t wake_ns;   /* when its next attempt begins; 0: one runs */
	int64_t failed_ns; /* the first failure since a byte; 0: none */
	unsigned failures; /* since a byte */
	unsigned num_attempts;
	bool was_hedged;
	bool waits_for_keys; /* the credentials of its next attempt */
	unsigned num_refused;
	bool wants_fresh; /* a connection */
	bool canceled;	  /* guarded by remote.lock */
};

struct remote {
	struct net *net;
	struct log *log;
	const char *name; /* for messages */
	uint64_t retry_ms;
	struct remote_limits limits;
	/* Fills in the target of an attempt, which is zero-initialized. The
	   header lines are those of the request so far. -EAGAIN: call
	   remote_wake() when there are credentials; or another -errno, with
	   the reason logged. */
	int (*aim)(struct remote *remote, const struct net_lines *headers,
		   struct remote_target *out);
	/* An answer that is no success. Returns true if another attempt may
	   succeed, with other credentials or in another place. May be NULL. */
	bool (*refused)(struct remote *remote,
			const struct remote_target *target,
			const struct refusal *refusal);
	/* The object was replaced: aims at the pinned version from now on.
	   Returns false if the server has no versions. May be NULL. */
	bool (*use_version)(struct remote *remote);
	void *arg;
	struct counters *reads;
	struct remote_counts counts;

	pthread_mutex_t lock; /* guards the members up to `is_closed` */
	pthread_cond_t closed;
	struct source_request *incoming;
	bool has_canceled;
	bool has_keys; /* again, by remote_wake() */
	bool is_closing;
	bool is_closed;

	/* The thread's own. */
	struct net_task task;
	struct net_timer timer;
	struct pin pin;
	struct depth depth;
	struct tail tail;
	struct outage outage;
	struct rng rng;
	struct fetch *must; /* a thread waits */
	struct fetch *waiting;
	struct fetch *active;
	struct attempt *attempts;
	unsigned num_active;
	unsigned num_attempts;
	unsigned num_published;
	bool is_stale;
	bool has_version;  /* attempts name the version */
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

/* Any thread, until remote_fini(): begins the attempts that wait for
   credentials. */
void remote_wake(struct remote *remote);

void remote_stats(const struct remote *remote, struct source_net_stats *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to read a range of an object by HTTP. An attempt is a transfer that
 * begins at the byte that its request, a `fetch`, has reached. It checks the
 * head of the answer against the pinned version, places the bytes, and measures
 * them. It lives until the net has ended it, also if its fetch has ended
 * before. All functions run on the thread of the net.
 */
#ifndef FS_SOURCE_OBJECT_ATTEMPT_H
#define FS_SOURCE_OBJECT_ATTEMPT_H

#include <stdatomic.h>

#include "fs/source/keys/refusal.h"
#include "fs/source/local/scatter.h"
#include "fs/source/local/source.h"
#include "fs/source/net/net.h"
#include "fs/source/pacing/depth.h"
#include "fs/source/pacing/detour.h"
#include "fs/source/pacing/outage.h"
#include "fs/source/pacing/pin.h"
#include "fs/source/pacing/tail.h"

enum {
	ATTEMPT_LINES_MAX = 16,
	ATTEMPT_NOTE_MAX = 1024, /* bytes of the body of an error */
};

/* Where an attempt goes; the owner of the remote fills it in. */
struct attempt_target {
	char *url;	      /* belongs to the attempt */
	const char *userinfo; /* NULL: none */
	bool netrc;
	/* Lines that only its host may see. They belong to the attempt. */
	char *secrets[ATTEMPT_LINES_MAX];
	size_t num_secrets;
	uint64_t keys; /* the version of the credentials */
	bool stays;    /* follows no redirect */
};

struct peer_counts {
	atomic_uint_fast64_t requests, connections, retries, stalls, hedges,
		hedge_bytes, throttled, wire_bytes, payload_bytes, failures;
	/* Copies for other threads. */
	atomic_uint_fast64_t rate, latency_ns, p50_ns, p99_ns, target, best;
	atomic_uint in_flight, waiting, depth;
	atomic_bool is_stale, is_out;
	atomic_int last_error;
};

/* The server of an object, and what is known about both. */
struct object_peer {
	struct net *net;
	struct peer_counts counts;
	struct pin pin;
	struct depth depth;
	struct tail tail;
	struct outage outage;
	struct detour detour;
	unsigned num_attempts;
};

/* A request on its way. */
struct fetch {
	void *owner;
	struct source_request *request;
	struct fetch *prev, *next;
	struct scatter memory;
	uint64_t off;
	uint64_t size; /* to read: less than requested at the end */
	uint64_t got;
	int64_t begin_ns;  /* when its first attempt began; 0: it waits */
	int64_t wake_ns;   /* when its next attempt begins; 0: one runs */
	int64_t failed_ns; /* the first failure since some KiB; 0: none */
	uint64_t failed_got;
	unsigned failures; /* since a byte */
	unsigned timeouts; /* of a server that is there */
	unsigned num_attempts;
	bool was_hedged;
	bool waits_for_keys; /* the credentials of its next attempt */
	bool waits_as_told;  /* by the server */
	unsigned num_refused;
	bool wants_fresh; /* a connection */
	bool avoids_detour;
	bool canceled; /* guarded by remote.lock */
};

struct attempt {
	struct net_transfer transfer;
	struct object_peer *peer;
	void *owner;
	void (*ended)(struct attempt *attempt, int result);
	struct fetch *fetch; /* NULL: ended before */
	struct attempt *prev, *next;
	struct attempt_target target;
	char range[64];
	char condition[PIN_LINE_SIZE];
	const char *headers[2];
	uint64_t at; /* of the next byte, in the object */
	uint64_t end;
	bool is_hedge;
	unsigned detour; /* serial number of its URL; 0: the first URL */
	char *moved_to;
	bool moved_within; /* its origin */
	bool is_probe;	   /* asks for the new version, for a message */
	bool has_version;
	bool is_first; /* its answer set the pin */
	enum pin_verdict verdict;
	char why[PIN_WHY_SIZE];
	struct refusal refusal;
	char note[ATTEMPT_NOTE_MAX + 1]; /* the body of an error */
	size_t note_size;
	size_t note_read;
};

/* Returns an attempt whose headers are complete; NULL without memory. The
   caller fills in `target`, and the members from `owner` on that it needs. A
   fetch of NULL: the attempt asks for the version of the object. */
struct attempt *attempt_new(struct object_peer *peer, struct fetch *fetch);
void attempt_free(struct attempt *attempt);

/* Starts the transfer. `ended` is called at its end, with 0 or -errno, and owns
   the attempt then. */
void attempt_send(struct attempt *attempt);

/* Returns whether the status is that of an answer with bytes. */
bool attempt_has_bytes(const struct attempt *attempt);

#endif

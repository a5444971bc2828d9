/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"
#include "fs/source/pacing/retry.h"

enum {
	REFUSED_MAX = 4, /* attempts of one request */
	/* Before the first answer of a server. */
	OPEN_MS = 5 * 1000,
	/* An answer of fewer bytes is a failure, so that a server cannot keep a
	   read by answers of a byte. */
	SHORT_MIN = 4 << 10,
};

/* Runs the queues later in the same turn of the thread. */
static void pump_soon(struct remote *r)
{
	net_timer_set(r->peer.net, &r->timer, 0);
}

/* --- the end of a fetch --- */

static void drop_attempts(struct remote *r, struct fetch *f)
{
	struct attempt *a;

	DL_FOREACH(r->attempts, a)
	{
		if (a->fetch != f)
			continue;
		a->fetch = NULL;
		net_cancel(r->peer.net, &a->transfer);
	}
}

static void count_fetch(struct remote *r, const struct fetch *f, int result)
{
	int64_t now = clock_ns();
	int64_t begin = f->begin_ns ? f->begin_ns : now;

	counters_item(r->reads, f->got, (uint64_t)(now - begin));
	counters_add(&r->reads->room_wait_ns,
		     (uint64_t)begin - f->request->since_ns);
	peer_add(&r->peer.counts.payload_bytes, f->got);
	if (result && result != -ECANCELED)
		peer_add(&r->peer.counts.failures, 1);
	if (!result && f->failures == 0 && !f->was_hedged)
		tail_whole(&r->peer.tail, f->size, now - begin);
}

void fetch_end(struct remote *r, struct fetch *f, int result)
{
	struct source_request *q = f->request;

	drop_attempts(r, f);
	count_fetch(r, f, result);
	q->got = f->got;
	pthread_mutex_lock(&r->lock);
	q->fetch = NULL;
	pthread_mutex_unlock(&r->lock);
	free(f);
	q->done(q, result);
}

static void finish(struct fetch *f, int result)
{
	struct remote *r = f->owner;

	DL_DELETE(r->active, f);
	r->num_active--;
	r->has_read |= !result;
	fetch_end(r, f, result);
}

/* --- failures --- */

static void name_answer(const struct http_answer *a, char buf[PIN_LINE_SIZE])
{
	if (*a->etag || a->has_modified)
		pin_name(a->etag, a->has_modified, a->modified, buf);
	else
		strcpy(buf, "another version");
}

static void log_replaced(struct remote *r, const struct http_answer *a)
{
	char was[PIN_LINE_SIZE], is[PIN_LINE_SIZE];
	const struct pin *pin = &r->peer.pin;

	pin_name(pin->etag, pin->has_modified, pin->modified, was);
	name_answer(a, is);
	/* Loaders that skip samples pass on no errors. */
	log_warning(
		r->log,
		"%s: the object was replaced: it was %s and is %s: reads fail until it is opened or mounted again",
		r->name, was, strcmp(was, is) ? is : "of another size");
}

static void begin_probe(struct remote *r);

/* An answer 412 need not contain the new version. */
static void become_stale(struct remote *r, const struct http_answer *a)
{
	if (r->is_stale)
		return;
	r->is_stale = true;
	if (*a->etag || a->status != 412)
		log_replaced(r, a);
	else
		begin_probe(r);
}

/* Continues with the old version if the server has kept it. */
static void take_replaced(struct fetch *f, const struct attempt *a)
{
	struct remote *r = f->owner;
	bool is_first = !r->has_version;

	if (is_first && r->use_version && r->use_version(r)) {
		r->has_version = true;
		detour_fails(&r->peer.detour, 0);
		log_warning(
			r->log,
			"%s: the object was replaced: continuing with its version %s",
			r->name, r->peer.pin.version);
	}
	if (r->has_version && !a->has_version) {
		f->wake_ns = clock_ns();
		return;
	}
	become_stale(r, &a->transfer.answer);
	finish(f, -ESTALE);
}

static void give_up(struct fetch *f, int error, const char *why)
{
	struct remote *r = f->owner;

	outage_gives_up(&r->peer.outage, clock_ns(), f->off + f->got,
			f->size - f->got, why);
	finish(f, error);
}

struct remote_failure {
	int error;
	const char *why;
	uint64_t after_s;  /* the server asks for this pause */
	int64_t silent_ns; /* without a byte */
	bool is_there;	   /* the server, which may answer later */
	bool is_wrong;	   /* the answer */
};

/* A URL that is wrong should not keep its user waiting. But a job may start
   while its server does, and its time of retries is meant for that. */
static int64_t patience_ns(const struct remote *r,
			   const struct remote_failure *why)
{
	uint64_t ms = r->retry_ms;
	bool is_open = why->is_wrong ? r->has_read : r->peer.pin.is_set;

	if (!is_open && !why->is_there && (why->is_wrong || !r->waits_to_open))
		ms = min_u64(ms, OPEN_MS);
	return (int64_t)ms * 1000000;
}

static void try_again(struct fetch *f, const struct remote_failure *why)
{
	struct remote *r = f->owner;
	int64_t now = clock_ns(), wake, last;
	int64_t patience = patience_ns(r, why);

	if (!f->failures++) {
		f->failed_ns = now;
		f->failed_got = f->got;
	}
	last = f->failed_ns + patience;
	peer_add(&r->peer.counts.retries, 1);
	atomic_store(&r->peer.counts.last_error, -why->error);
	if (now >= last || r->peer.outage.is_hopeless) {
		r->peer.outage.is_hopeless = true;
		give_up(f, why->error, why->why);
		return;
	}
	outage_fails(&r->peer.outage, now, why->silent_ns, why->why,
		     (uint64_t)patience / 1000000);
	f->waits_as_told = why->after_s;
	wake = now + retry_delay_ns(f->failures, why->after_s, &r->rng);
	/* The last attempt is at the end of the time. */
	f->wake_ns = wake < last ? wake : last;
}

/* A server did answer, but wrongly. */
static void try_again_after(struct fetch *f, const char *why)
{
	try_again(f, &(struct remote_failure){
			     .error = -EIO, .why = why, .is_wrong = true });
}

static void slow_down(struct remote *r, const char *why)
{
	peer_add(&r->peer.counts.throttled, 1);
	if (!depth_throttled(&r->peer.depth, clock_ns()) || r->is_throttled)
		return;
	r->is_throttled = true;
	log_warning(
		r->log,
		"%s: %s: the server limits the rate of requests: continuing with fewer at a time",
		r->name, why);
}

/* Returns whether the owner expects another attempt to succeed. */
static bool takes_refusal(struct fetch *f, struct attempt *a)
{
	struct remote *r = f->owner;

	if (!r->refused || f->num_refused == REFUSED_MAX)
		return false;
	f->num_refused++;
	a->refusal.status = a->transfer.answer.status;
	refusal_body(&a->refusal, a->note, a->note_size);
	return r->refused(r, &a->target, &a->refusal);
}

static void describe_status(const struct remote *r, const struct attempt *a,
			    char *out, size_t size)
{
	int status = a->transfer.answer.status;
	bool asks = !r->peer.pin.is_set && (status == 401 || status == 403);

	snprintf(out, size, "the server answers with status %d%s%s%s%s", status,
		 *a->refusal.code ? " (" : "", a->refusal.code,
		 *a->refusal.code ? ")" : "",
		 asks ? ": beton-remote(7) describes credentials" : "");
}

static void fail_by_status(struct fetch *f, struct attempt *a)
{
	struct remote *r = f->owner;
	int status = a->transfer.answer.status;
	uint64_t after_s = a->transfer.answer.retry_after;
	int error = retry_errno(status);
	enum retry_kind kind = retry_of_status(status);
	char why[128 + REFUSAL_CODE_SIZE];

	if ((kind == RETRY_FINAL || kind == RETRY_CREDENTIALS) &&
	    takes_refusal(f, a)) {
		f->wake_ns = clock_ns();
		return;
	}
	describe_status(r, a, why, sizeof(why));
	switch (kind) {
	case RETRY_THROTTLED:
		slow_down(r, why);
		/* fall through */
	case RETRY_NONE:
	case RETRY_AGAIN:
		try_again(f, &(struct remote_failure){ .error = error,
						       .why = why,
						       .after_s = after_s,
						       .is_there = true });
		return;
	case RETRY_REPLACED:
		if (!r->peer.pin.is_set)
			break;
		take_replaced(f, a);
		return;
	case RETRY_CREDENTIALS:
	case RETRY_FINAL:
		break;
	}
	if (r->has_read)
		outage_refuses(&r->peer.outage, why);
	give_up(f, error, why);
}

static void fail_by_verdict(struct fetch *f, const struct attempt *a)
{
	switch (a->verdict) {
	case PIN_REPLACED:
		take_replaced(f, a);
		return;
	case PIN_REFUSED:
		give_up(f, -EOPNOTSUPP, a->why);
		return;
	case PIN_OK:
	case PIN_WRONG:
		try_again_after(f, a->why);
	}
}

static void fail_by_transport(struct fetch *f, const struct attempt *a,
			      int error)
{
	struct remote *r = f->owner;
	const struct net_transfer *t = &a->transfer;
	const struct remote_failure failure = {
		.error = error,
		.why = *t->why ? t->why : strerror(-error),
		.silent_ns = clock_ns() - t->last_ns,
		.is_there = error == -ETIMEDOUT && t->sent_ns,
	};

	f->wants_fresh = true;
	f->timeouts += failure.is_there;
	if (error == -ETIMEDOUT)
		peer_add(&r->peer.counts.stalls, 1);
	if (t->is_final)
		give_up(f, error, t->why);
	else
		try_again(f, &failure);
}

/* Asks the first URL if the target of its redirect does not answer. */
static bool leaves_detour(struct fetch *f, const struct attempt *a, int result)
{
	struct remote *r = f->owner;

	if (!a->detour || (!result && attempt_has_bytes(a)))
		return false;
	detour_fails(&r->peer.detour, a->detour);
	if (f->avoids_detour)
		return false;
	f->avoids_detour = true;
	f->wake_ns = clock_ns();
	return true;
}

/* --- the end of an attempt --- */

/* An answer without an error: complete, or shorter than the request. */
static void take_end(struct fetch *f, const struct attempt *a)
{
	uint64_t size = a->at - a->transfer.answer.first;
	char why[PIN_WHY_SIZE];

	if (f->got == f->size) {
		finish(f, 0);
	} else if (size >= SHORT_MIN) {
		f->wake_ns = clock_ns();
	} else {
		snprintf(why, sizeof(why),
			 "the answer ends %llu bytes too early",
			 (unsigned long long)(f->size - f->got));
		try_again_after(f, why);
	}
}

static bool is_conclusive(const struct attempt *a, int result)
{
	return a->verdict == PIN_REPLACED || a->verdict == PIN_REFUSED ||
	       (!result && a->transfer.answer.status == 412);
}

static void judge(struct fetch *f, struct attempt *a, int result)
{
	/* The other attempt continues. */
	if (f->num_attempts && f->got < f->size && !is_conclusive(a, result))
		return;
	/* The answer may end badly after its last byte, such as by no end. */
	if (f->got && f->got == f->size) {
		finish(f, 0);
		return;
	}
	if (leaves_detour(f, a, result))
		return;
	f->avoids_detour = false;
	if (a->verdict != PIN_OK)
		fail_by_verdict(f, a);
	else if (result && result != -EMSGSIZE)
		fail_by_transport(f, a, result);
	else if (attempt_has_bytes(a))
		take_end(f, a);
	else
		fail_by_status(f, a);
}

static void end_attempt(struct attempt *a, int result)
{
	struct remote *r = a->owner;
	struct fetch *f = a->fetch;

	DL_DELETE(r->attempts, a);
	pump_soon(r);
	if (a->is_probe)
		log_replaced(r, &a->transfer.answer);
	if (f) {
		f->num_attempts--;
		/* It is no longer one to cancel. */
		a->fetch = NULL;
		judge(f, a, result);
	}
	attempt_free(a);
}

/* Returns NULL if memory or credentials are missing: *error. */
static struct attempt *new_attempt(struct remote *r, struct fetch *f,
				   bool is_hedge, int *error)
{
	struct attempt *a = attempt_new(&r->peer, f);

	*error = -ENOMEM;
	if (!a)
		return NULL;
	a->owner = r;
	a->ended = end_attempt;
	a->is_hedge = is_hedge;
	a->has_version = r->has_version;
	*error = r->aim(r, &a->transfer.headers, &a->target);
	if (!*error)
		return a;
	attempt_free(a);
	return NULL;
}

static void send_attempt(struct remote *r, struct attempt *a)
{
	DL_APPEND(r->attempts, a);
	attempt_send(a);
}

/* The credentials are being renewed, or memory is short. */
static void fail_to_begin(struct fetch *f, int error)
{
	if (error != -EAGAIN) {
		finish(f, error);
		return;
	}
	f->waits_for_keys = true;
	try_again(f, &(struct remote_failure){
			     .error = -EACCES,
			     .why = "there are no valid credentials",
			     .after_s = 1 });
}

void fetch_attempt(struct fetch *f, bool is_hedge)
{
	struct remote *r = f->owner;
	int error;
	struct attempt *a = new_attempt(r, f, is_hedge, &error);

	f->wake_ns = 0;
	f->waits_for_keys = false;
	if (!a) {
		if (!is_hedge)
			fail_to_begin(f, error);
		return;
	}
	f->num_attempts++;
	send_attempt(r, a);
}

static void begin_probe(struct remote *r)
{
	int error;
	struct attempt *a = new_attempt(r, NULL, false, &error);

	if (a)
		send_attempt(r, a);
	else
		log_replaced(r, &(struct http_answer){ 0 });
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/pacing/retry.h"

enum {
	REFUSED_MAX = 4, /* attempts of one request */
	/* Before the first answer of a server. */
	OPEN_MS = 5 * 1000,
	/* An answer of fewer bytes is a failure, so that a server cannot keep a
	   read by answers of a byte. */
	SHORT_MIN = 4 << 10,
	/* One of so many requests is no urgent one. */
	URGENT_RUN = 32,
};

static void add(atomic_uint_fast64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

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
	add(&r->peer.counts.payload_bytes, f->got);
	if (result && result != -ECANCELED)
		add(&r->peer.counts.failures, 1);
	if (!result && f->failures == 0 && !f->was_hedged)
		tail_whole(&r->peer.tail, f->size, now - begin);
}

/* The fetch is on no list. */
static void end_fetch(struct remote *r, struct fetch *f, int result)
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
	end_fetch(r, f, result);
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
	add(&r->peer.counts.retries, 1);
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
	add(&r->peer.counts.throttled, 1);
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
		add(&r->peer.counts.stalls, 1);
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

static void begin_attempt(struct fetch *f, bool is_hedge)
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

/* --- queues --- */

static void begin_fetch(struct remote *r, struct fetch **queue)
{
	struct fetch *f = *queue;

	DL_DELETE(*queue, f);
	DL_APPEND(r->active, f);
	r->num_active++;
	f->begin_ns = clock_ns();
	depth_begin(&r->peer.depth, f->size);
	begin_attempt(f, false);
}

/* Urgent requests come first. But readers may wait for others, too, that were
   read ahead for them, and urgent ones of further readers may never end. */
static struct fetch **next_queue(struct remote *r)
{
	if (!r->waiting || ++r->num_urgent < URGENT_RUN)
		return &r->must;
	r->num_urgent = 0;
	return &r->waiting;
}

static void begin_fetches(struct remote *r)
{
	while (r->must && r->num_active < depth_urgent(&r->peer.depth))
		begin_fetch(r, next_queue(r));
	while (r->waiting && r->num_active < depth_requests(&r->peer.depth))
		begin_fetch(r, &r->waiting);
	/* Callers keep no more than the depth in flight. */
	if (r->num_active >= depth_requests(&r->peer.depth))
		depth_full(&r->peer.depth);
}

static void fail_all(struct remote *r, struct fetch **queue, int result)
{
	struct fetch *f;

	while ((f = *queue)) {
		DL_DELETE(*queue, f);
		if (queue == &r->active)
			r->num_active--;
		end_fetch(r, f, result);
	}
}

static struct fetch *new_fetch(struct remote *r, struct source_request *q)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->owner = r;
	f->request = q;
	f->memory.request = q;
	f->off = q->off;
	f->size = q->size;
	if (r->peer.pin.is_set)
		f->size = min_u64(f->size, r->peer.pin.size - f->off);
	return f;
}

/* Moves a request into a queue. Returns false if there is none. */
static bool take_incoming(struct remote *r)
{
	struct source_request *q;
	struct fetch *f = NULL;

	pthread_mutex_lock(&r->lock);
	q = r->incoming;
	if (q) {
		DL_DELETE(r->incoming, q);
		q->queued = false;
		f = new_fetch(r, q);
		q->fetch = f;
	}
	pthread_mutex_unlock(&r->lock);
	if (!q)
		return false;
	if (!f)
		q->done(q, -ENOMEM);
	else if (q->must)
		DL_APPEND(r->must, f);
	else
		DL_APPEND(r->waiting, f);
	return true;
}

static bool is_canceled(struct remote *r, const struct fetch *f)
{
	scoped_lock(&r->lock);
	return f->canceled;
}

/* Returns whether it ended one; callbacks may have changed the queue. */
static bool end_one_canceled(struct remote *r, struct fetch **queue)
{
	struct fetch *f;

	DL_FOREACH(*queue, f)
	{
		if (!is_canceled(r, f))
			continue;
		DL_DELETE(*queue, f);
		if (queue == &r->active)
			r->num_active--;
		end_fetch(r, f, -ECANCELED);
		return true;
	}
	return false;
}

static bool take_has_canceled(struct remote *r)
{
	bool has;

	scoped_lock(&r->lock);
	has = r->has_canceled;
	r->has_canceled = false;
	return has;
}

static void end_canceled(struct remote *r)
{
	struct fetch **const queues[] = { &r->must, &r->waiting, &r->active };

	if (!take_has_canceled(r))
		return;
	for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
		while (end_one_canceled(r, queues[i]))
			;
	}
}

static bool take_has_keys(struct remote *r)
{
	bool has;

	scoped_lock(&r->lock);
	has = r->has_keys;
	r->has_keys = false;
	return has;
}

static void wake_for_keys(struct remote *r, int64_t now)
{
	struct fetch *f;

	if (!take_has_keys(r))
		return;
	DL_FOREACH(r->active, f)
	{
		if (f->waits_for_keys)
			f->wake_ns = now;
	}
}

/* If the server answers again, the next attempts need not wait any longer. */
static void wake_after_outage(struct remote *r, int64_t now)
{
	bool is_over = r->was_out && !r->peer.outage.is_logged;
	struct fetch *f;

	r->was_out = r->peer.outage.is_logged;
	if (!is_over)
		return;
	DL_FOREACH(r->active, f)
	{
		if (f->wake_ns > now && !f->waits_as_told)
			f->wake_ns = now;
	}
}

/* Begins the attempts whose time has come. Each may end its fetch. */
static bool wake_one(struct remote *r, int64_t now)
{
	struct fetch *f;

	DL_FOREACH(r->active, f)
	{
		if (!f->wake_ns || f->wake_ns > now)
			continue;
		begin_attempt(f, false);
		return true;
	}
	return false;
}

/* When a fetch deserves a second attempt; INT64_MAX: never. One that is read
   ahead deserves it, too: a reader will soon wait for what is late. */
static int64_t hedge_at(const struct remote *r, const struct fetch *f)
{
	int64_t late;

	if (f->was_hedged || f->wake_ns || f->num_attempts != 1)
		return INT64_MAX;
	late = tail_late_ns(&r->peer.tail, f->size);
	return late == INT64_MAX ? late : f->begin_ns + late;
}

static bool hedge_one(struct remote *r, int64_t now)
{
	struct fetch *f;

	DL_FOREACH(r->active, f)
	{
		if (hedge_at(r, f) > now)
			continue;
		f->was_hedged = true;
		if (!tail_may_hedge(&r->peer.tail, f->size - f->got))
			continue;
		add(&r->peer.counts.hedges, 1);
		begin_attempt(f, true);
		return true;
	}
	return false;
}

static void set_timer(struct remote *r)
{
	int64_t at = INT64_MAX;
	struct fetch *f;

	DL_FOREACH(r->active, f)
	{
		int64_t own = f->wake_ns ? f->wake_ns : hedge_at(r, f);

		if (own < at)
			at = own;
	}
	if (at < INT64_MAX)
		net_timer_set(r->peer.net, &r->timer, at);
}

static unsigned count_waiting(const struct remote *r)
{
	const struct fetch *f;
	unsigned n = 0;

	DL_FOREACH(r->must, f)
	n++;
	DL_FOREACH(r->waiting, f)
	n++;
	return n;
}

/* Quantiles cost some us, so compute them now and then. */
static void publish_tail(struct remote *r)
{
	struct peer_counts *c = &r->peer.counts;

	if (r->num_published++ % 64)
		return;
	atomic_store(&c->p50_ns,
		     (uint64_t)tail_first_quantile(&r->peer.tail, 0.5));
	atomic_store(&c->p99_ns,
		     (uint64_t)tail_first_quantile(&r->peer.tail, 0.99));
}

static void publish(struct remote *r)
{
	struct peer_counts *c = &r->peer.counts;

	publish_tail(r);
	atomic_store(&c->rate, (uint64_t)depth_rate(&r->peer.depth));
	atomic_store(&c->latency_ns, (uint64_t)r->peer.depth.latency_ns);
	atomic_store(&c->target, r->peer.depth.target);
	atomic_store(&c->best, depth_best_read(&r->peer.depth));
	atomic_store(&c->depth, depth_requests(&r->peer.depth));
	atomic_store(&c->in_flight, r->peer.num_attempts);
	atomic_store(&c->waiting, count_waiting(r));
	atomic_store(&c->is_stale, r->is_stale);
	atomic_store(&c->is_out, r->peer.outage.is_logged);
}

static bool is_closing(struct remote *r)
{
	scoped_lock(&r->lock);
	return r->is_closing;
}

static bool is_halted(struct remote *r)
{
	scoped_lock(&r->lock);
	return r->is_halted;
}

static bool is_idle(const struct remote *r)
{
	return !r->must && !r->waiting && !r->active && !r->attempts;
}

static void end_all(struct remote *r, int result)
{
	fail_all(r, &r->must, result);
	fail_all(r, &r->waiting, result);
	fail_all(r, &r->active, result);
}

static void pump(struct remote *r)
{
	int64_t now = clock_ns();

	while (take_incoming(r))
		;
	end_canceled(r);
	if (r->is_stale)
		end_all(r, -ESTALE);
	if (is_halted(r))
		end_all(r, -ECANCELED);
	wake_for_keys(r, now);
	wake_after_outage(r, now);
	while (wake_one(r, now) || hedge_one(r, now))
		;
	begin_fetches(r);
	if (!r->peer.depth.ceiling)
		r->is_throttled = false;
	set_timer(r);
	publish(r);
}

static void run_timer(struct net_timer *timer)
{
	struct remote *r =
		(void *)((char *)timer - offsetof(struct remote, timer));

	/* The task ends the remote, because another one may be posted. */
	if (is_closing(r))
		net_post(r->peer.net, &r->task);
	else
		pump(r);
}

static void end_probes(struct remote *r)
{
	struct attempt *a;

	DL_FOREACH(r->attempts, a)
	{
		if (a->is_probe)
			net_cancel(r->peer.net, &a->transfer);
	}
}

/* The owner may free the remote as soon as the lock is free. */
static void close_if_idle(struct remote *r)
{
	while (take_incoming(r))
		;
	end_all(r, -ECANCELED);
	end_probes(r);
	if (!is_idle(r))
		return;
	net_timer_stop(r->peer.net, &r->timer);
	scoped_lock(&r->lock);
	r->is_closed = true;
	pthread_cond_signal(&r->closed);
}

static void run_task(struct net_task *task)
{
	struct remote *r =
		(void *)((char *)task - offsetof(struct remote, task));

	if (is_closing(r))
		close_if_idle(r);
	else
		pump(r);
}

/* --- other threads --- */

void remote_init(struct remote *r)
{
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->closed, NULL);
	r->task.run = run_task;
	r->timer.run = run_timer;
	r->peer.outage = (struct outage){ .log = r->log, .name = r->name };
	r->rng.key = rng_mix((uint64_t)clock_ns());
	publish(r);
}

/* The system may have no memory for a thread at the moment. */
static void post_at_last(struct remote *r)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	while (net_post(r->peer.net, &r->task))
		nanosleep(&pause, NULL);
}

void remote_stop(struct remote *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_closing = true;
	pthread_mutex_unlock(&r->lock);
	post_at_last(r);
	pthread_mutex_lock(&r->lock);
	while (!r->is_closed)
		pthread_cond_wait(&r->closed, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void remote_fini(struct remote *r)
{
	detour_fini(&r->peer.detour);
	pthread_cond_destroy(&r->closed);
	pthread_mutex_destroy(&r->lock);
}

void remote_halt(struct remote *r)
{
	scoped_lock(&r->lock);
	if (r->is_closing)
		return;
	r->is_halted = true;
	net_post(r->peer.net, &r->task);
}

/* A task that is posted later would outlive the remote. */
void remote_wake(struct remote *r)
{
	scoped_lock(&r->lock);
	if (r->is_closing)
		return;
	r->has_keys = true;
	net_post(r->peer.net, &r->task);
}

/* Returns whether the request still waits for the thread; it may have been
   freed otherwise. */
static bool take_back(struct remote *r, const struct source_request *request)
{
	struct source_request *q;

	scoped_lock(&r->lock);
	DL_FOREACH(r->incoming, q)
	{
		if (q != request)
			continue;
		DL_DELETE(r->incoming, q);
		q->queued = false;
		return true;
	}
	return false;
}

void remote_submit(struct remote *r, struct source_request *q)
{
	int error;

	q->got = 0;
	q->fetch = NULL;
	q->queued = true;
	q->since_ns = (uint64_t)clock_ns();
	pthread_mutex_lock(&r->lock);
	DL_APPEND(r->incoming, q);
	pthread_mutex_unlock(&r->lock);
	error = net_post(r->peer.net, &r->task);
	if (error && take_back(r, q))
		q->done(q, error);
}

void remote_cancel(struct remote *r, struct source_request *q)
{
	struct fetch *f;
	bool waits;

	pthread_mutex_lock(&r->lock);
	waits = q->queued;
	f = q->fetch;
	if (waits) {
		DL_DELETE(r->incoming, q);
		q->queued = false;
	} else if (f) {
		f->canceled = true;
		r->has_canceled = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (waits)
		q->done(q, -ECANCELED);
	else if (f)
		net_post(r->peer.net, &r->task);
}

void remote_stats(const struct remote *r, struct source_net_stats *out)
{
	const struct peer_counts *c = &r->peer.counts;

	*out = (struct source_net_stats){
		.rate = atomic_load(&c->rate),
		.latency_ns = atomic_load(&c->latency_ns),
		.latency_p50_ns = atomic_load(&c->p50_ns),
		.latency_p99_ns = atomic_load(&c->p99_ns),
		.in_flight = atomic_load(&c->in_flight),
		.waiting = atomic_load(&c->waiting),
		.depth = atomic_load(&c->depth),
		.target_bytes = atomic_load(&c->target),
		.requests = atomic_load(&c->requests),
		.connections = atomic_load(&c->connections),
		.retries = atomic_load(&c->retries),
		.stalls = atomic_load(&c->stalls),
		.hedges = atomic_load(&c->hedges),
		.hedge_bytes = atomic_load(&c->hedge_bytes),
		.throttled = atomic_load(&c->throttled),
		.wire_bytes = atomic_load(&c->wire_bytes),
		.payload_bytes = atomic_load(&c->payload_bytes),
		.failures = atomic_load(&c->failures),
		.is_stale = atomic_load(&c->is_stale),
		.is_out = atomic_load(&c->is_out),
		.last_error = atomic_load(&c->last_error),
	};
}

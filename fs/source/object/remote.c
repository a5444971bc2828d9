/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/remote.h"

#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

/* One of so many requests is no urgent one. */
enum { URGENT_RUN = 32 };

/* --- queues --- */

static void begin_fetch(struct remote *r, struct fetch **queue)
{
	struct fetch *f = *queue;

	DL_DELETE(*queue, f);
	DL_APPEND(r->active, f);
	r->num_active++;
	f->begin_ns = clock_ns();
	depth_begin(&r->peer.depth, f->size);
	fetch_attempt(f, false);
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
		fetch_end(r, f, result);
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
		fetch_end(r, f, -ECANCELED);
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
		fetch_attempt(f, false);
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
		peer_add(&r->peer.counts.hedges, 1);
		fetch_attempt(f, true);
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

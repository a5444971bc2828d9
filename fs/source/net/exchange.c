/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"

enum { POLL_MS = 100 };

struct waited {
	struct net_task start;
	struct net_task cancel;
	struct net_transfer transfer;
	struct net *net;
	struct exchange *exchange;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool has_ended;
	bool cancels; /* the task `cancel` has still to run */
	int result;
};

/* --- the thread of the net ----------------------------------------------- */

static int take_bytes(struct net_transfer *t, const void *data, size_t size)
{
	struct exchange *e = ((struct waited *)t->arg)->exchange;
	size_t n = min_u64(size, EXCHANGE_TEXT_MAX - e->text_size);

	if (!e->text)
		e->text = calloc(1, EXCHANGE_TEXT_MAX + 1);
	if (!e->text)
		return -ENOMEM;
	memcpy(e->text + e->text_size, data, n);
	e->text_size += n;
	return e->begins && n < size ? -ENOBUFS : 0;
}

static int pass_bytes(struct net_transfer *t, const void *data, size_t size)
{
	const struct exchange *e = ((struct waited *)t->arg)->exchange;

	return e->sink(e->sink_arg, data, size);
}

static void take_line(struct net_transfer *t, const char *line, size_t size)
{
	const struct exchange *e = ((struct waited *)t->arg)->exchange;

	e->line(e->line_arg, line, size);
}

static void end(struct net_transfer *t, int result)
{
	struct waited *w = t->arg;

	pthread_mutex_lock(&w->lock);
	w->result = result;
	w->has_ended = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void run_start(struct net_task *task)
{
	struct waited *w = (struct waited *)task;

	net_start(w->net, &w->transfer);
}

static void run_cancel(struct net_task *task)
{
	struct waited *w = (struct waited *)((char *)task -
					     offsetof(struct waited, cancel));
	bool ended;

	pthread_mutex_lock(&w->lock);
	ended = w->has_ended;
	pthread_mutex_unlock(&w->lock);
	if (!ended)
		net_cancel(w->net, &w->transfer);
	pthread_mutex_lock(&w->lock);
	w->cancels = false;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* --- the thread that waits ----------------------------------------------- */

/* Ends the transfer, once. The caller holds the lock. */
static void cancel(struct waited *w)
{
	w->cancels = true;
	w->cancel.run = run_cancel;
	if (net_post(w->net, &w->cancel))
		w->cancels = false;
}

/* Polls until the transfer ends, or has to end. */
static int wait_for(struct waited *w)
{
	const struct exchange *e = w->exchange;
	struct timespec until;
	int r = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->has_ended || w->cancels) {
		if (r || !e->poll) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		until = clock_in_ms(POLL_MS);
		pthread_cond_timedwait(&w->changed, &w->lock, &until);
		if (w->has_ended)
			continue;
		pthread_mutex_unlock(&w->lock);
		r = e->poll(e->arg);
		pthread_mutex_lock(&w->lock);
		if (r && !w->has_ended)
			cancel(w);
	}
	pthread_mutex_unlock(&w->lock);
	return r ? r : w->result;
}

static struct net_transfer transfer_of(const struct exchange *e,
				       struct waited *w)
{
	return (struct net_transfer){
		.method = e->method,
		.url = e->url,
		.headers = e->headers,
		.secrets = e->secrets,
		.body = e->body,
		.body_size = e->body_size,
		.userinfo = e->userinfo,
		.netrc = e->netrc,
		.fresh = e->fresh,
		.direct = e->direct,
		.no_redirects = e->no_redirects,
		.connect_ms =
			e->connect_ms ? e->connect_ms : EXCHANGE_CONNECT_MS,
		.first_byte_ms = e->first_byte_ms,
		.stall_ms = e->stall_ms,
		.line = e->line ? take_line : NULL,
		.sink = e->sink ? pass_bytes : take_bytes,
		.done = end,
		.arg = w,
	};
}

/* Returns whether the server may have the request, given the result. */
static bool may_be_sent(int r)
{
	static const int before[] = { EHOSTUNREACH, ECONNREFUSED,
				      EKEYREJECTED, EPROTONOSUPPORT,
				      EINVAL,	    E2BIG,
				      ENOTSUP };

	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		if (r == -before[i])
			return false;
	}
	return true;
}

int exchange_run(struct net *net, struct exchange *e)
{
	struct waited w = { .net = net, .exchange = e };
	int r;

	e->text = NULL;
	e->text_size = 0;
	w.start.run = run_start;
	w.transfer = transfer_of(e, &w);
	pthread_mutex_init(&w.lock, NULL);
	clock_cond_init(&w.changed);
	r = net_post(net, &w.start);
	r = r ? r : wait_for(&w);
	if (r == -ENOBUFS)
		r = 0;
	e->answer = w.transfer.answer;
	e->is_final = w.transfer.is_final;
	e->was_sent = may_be_sent(r);
	memcpy(e->why, w.transfer.why, sizeof(e->why));
	pthread_cond_destroy(&w.changed);
	pthread_mutex_destroy(&w.lock);
	return r;
}

int exchange_sleep(uint64_t ms, exchange_poll *poll, void *arg)
{
	int64_t end_ns = clock_ns() + (int64_t)ms * 1000000;
	int r = 0;

	for (;;) {
		int64_t left = (end_ns - clock_ns()) / 1000000;
		int64_t step = left < POLL_MS ? left : POLL_MS;

		r = poll ? poll(arg) : 0;
		if (r || left <= 0)
			return r;
		nanosleep(&(struct timespec){ 0, step * 1000000 + 1 }, NULL);
	}
}

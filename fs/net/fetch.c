/* SPDX-License-Identifier: Apache-2.0 */
/* net_fetch(): a transfer into memory that another thread waits for. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fs/net/net.h"
#include "fs/util/cleanup.h"

enum { TIMEOUT_MS = 5000 };

struct waited {
	struct net_task task;
	struct net_transfer transfer;
	struct net *net;
	struct net_fetch *fetch;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t ended;
	bool has_ended;
	int result;
};

static int take_bytes(struct net_transfer *t, const void *data, size_t size)
{
	struct waited *w = t->arg;
	struct net_fetch *f = w->fetch;

	if (size > f->size - f->got)
		return -EFBIG;
	memcpy(f->buf + f->got, data, size);
	f->got += size;
	return 0;
}

static void take_line(struct net_transfer *t, const char *line, size_t size)
{
	struct waited *w = t->arg;

	w->fetch->line(w->fetch->arg, line, size);
}

static void end(struct net_transfer *t, int result)
{
	struct waited *w = t->arg;

	scoped_lock(&w->lock);
	w->result = result;
	w->has_ended = true;
	pthread_cond_signal(&w->ended);
}

static void begin(struct net_task *task)
{
	struct waited *w = (struct waited *)task;

	net_start(w->net, &w->transfer);
}

static struct net_transfer transfer_of(struct net_fetch *f)
{
	unsigned ms = f->timeout_ms ? f->timeout_ms : TIMEOUT_MS;

	return (struct net_transfer){
		.method = f->method,
		.url = f->url,
		.headers = f->headers,
		.secrets = f->secrets,
		.body = f->body,
		.body_size = f->body_size,
		.netrc = f->netrc,
		.direct = f->direct,
		.no_redirects = f->no_redirects,
		.connect_ms = ms,
		.first_byte_ms = ms,
		.stall_ms = ms,
		.line = f->line ? take_line : NULL,
		.sink = take_bytes,
		.done = end,
	};
}

static int wait_for(struct waited *w)
{
	scoped_lock(&w->lock);
	while (!w->has_ended)
		pthread_cond_wait(&w->ended, &w->lock);
	return w->result;
}

int net_fetch(struct net *net, struct net_fetch *f)
{
	struct waited w = { .net = net, .fetch = f, .task.run = begin };
	int r;

	f->got = 0;
	w.transfer = transfer_of(f);
	w.transfer.arg = &w;
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.ended, NULL);
	r = net_post(net, &w.task);
	if (!r)
		r = wait_for(&w);
	f->answer = w.transfer.answer;
	memcpy(f->why, w.transfer.why, sizeof(f->why));
	pthread_cond_destroy(&w.ended);
	pthread_mutex_destroy(&w.lock);
	return r;
}

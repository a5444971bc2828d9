/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/callback.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"

struct callback {
	pthread_mutex_t lock; /* guards all other members */
	pthread_cond_t known;
	bool is_known; /* run and arg are final */
	bool is_stopped;
	beton_callback_fn *run; /* NULL: batches pass unchanged */
	void *arg;
};

int callback_open(struct callback **out)
{
	struct callback *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->known, NULL);
	*out = h;
	return 0;
}

void callback_close(struct callback *h)
{
	if (!h)
		return;
	pthread_cond_destroy(&h->known);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

int callback_set(struct callback *h, beton_callback_fn *run, void *arg)
{
	scoped_lock(&h->lock);
	if (h->is_known)
		return -EINVAL;
	h->run = run;
	h->arg = arg;
	h->is_known = true;
	pthread_cond_broadcast(&h->known);
	return 0;
}

void callback_stop(struct callback *h)
{
	if (!h)
		return;
	scoped_lock(&h->lock);
	h->is_stopped = true;
	pthread_cond_broadcast(&h->known);
}

/* Waits until the user has set the callback. The wait does not count as work of
   the stage. */
static int wait_until_known(struct callback *h, struct counters *transform)
{
	uint64_t before;

	scoped_lock(&h->lock);
	if (h->is_known)
		return 0;
	before = stage_now_ns();
	while (!h->is_known && !h->is_stopped)
		pthread_cond_wait(&h->known, &h->lock);
	counters_add_own(&transform->input_wait_ns, stage_now_ns() - before);
	return h->is_known ? 0 : -ECANCELED;
}

int callback_run(struct callback *h, const struct beton_batch *batch,
		 struct stage_lane *lane, uint64_t *busy_ns, char *why,
		 size_t size)
{
	struct counters *transform = &lane->stages[STAGE_TRANSFORM];
	int r = wait_until_known(h, transform);
	uint64_t before, after;

	*why = '\0';
	if (r || !h->run)
		return r;
	before = stage_now_ns();
	r = h->run(h->arg, batch, why, size);
	after = stage_now_ns();
	/* Adds only the time, because the workers have counted the rows. */
	counters_items_own(transform, 0, 0, after - before);
	trace_span(lane->track, TRACE_TRANSFORM, before, after, batch->ids[0],
		   batch->num_samples);
	*busy_ns += after - before;
	return r;
}

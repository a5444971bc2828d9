/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/zerocopy/request.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

void zerocopy_wake(const struct zerocopy_shared *h)
{
	/* The counter cannot overflow. */
	if (eventfd_write(h->events, 1))
		return;
}

struct zerocopy_request *request_new(struct zerocopy_shared *h,
				     struct stream *stream, uint64_t at)
{
	struct zerocopy_request *q = calloc(1, sizeof(*q));

	if (!q) {
		stream_close(stream);
		return NULL;
	}
	q->shared = h;
	q->stream = stream;
	q->at = at;
	q->asked_ns = clock_ns();
	return q;
}

/* --- lists --- */

void requests_add(struct requests *list, struct zerocopy_request *q)
{
	DL_APPEND(list->list, q);
	list->n++;
	q->in = list;
}

static void request_unlink(struct zerocopy_request *q)
{
	DL_DELETE(q->in->list, q);
	q->in->n--;
}

/* --- threads of the engine --- */

static void request_done(struct zerocopy_request *q, int result)
{
	struct zerocopy_shared *h = q->shared;

	pthread_mutex_lock(&h->lock);
	q->is_done = true;
	q->result = result;
	DL_APPEND2(h->done, q, prev_done, next_done);
	/* Signal with the lock held. Otherwise another thread might free the
	   request meanwhile. */
	zerocopy_wake(h);
	pthread_mutex_unlock(&h->lock);
}

static void request_laid_out(void *arg, int result, struct batch *batch)
{
	struct zerocopy_request *q = arg;

	q->batch = batch;
	request_done(q, result);
}

static void request_collated(void *arg, int result, struct slot *slot)
{
	struct zerocopy_request *q = arg;

	q->slot = slot;
	request_done(q, result);
}

/* --- the thread of the zero-copy delivery --- */

bool request_is_laid_out(struct zerocopy_request *q)
{
	return stream_cached(q->stream, q->at, &q->batch);
}

int request_lay_out(struct zerocopy_request *q)
{
	return stream_lay_out(q->stream, q->at, request_laid_out, q,
			      &q->ticket);
}

int request_collate(struct zerocopy_request *q, uint64_t bytes)
{
	q->bytes = bytes;
	q->shared->bytes += bytes;
	q->is_stalled = !stream_ready(q->stream, q->batch);
	/* If a loader is refused, it opens the file instead. Both count as one
	   reader. */
	stream_note(q->stream, q->at);
	ticket_close(&q->ticket);
	return stream_submit(q->stream, q->batch, &(struct dest){ NULL, 0 },
			     request_collated, q, &q->ticket);
}

/* Releases a request whose ticket is closed, and its result. */
static void request_release(struct zerocopy_request *q)
{
	struct zerocopy_shared *h = q->shared;

	pthread_mutex_lock(&h->lock);
	if (q->is_done)
		DL_DELETE2(h->done, q, prev_done, next_done);
	pthread_mutex_unlock(&h->lock);
	slot_put(&q->slot);
	jobs_put(&q->job);
	batch_put(&q->batch);
	stream_close(q->stream);
	h->bytes -= q->bytes;
	request_unlink(q);
	free(q);
}

void request_free(struct zerocopy_request *q)
{
	ticket_close(&q->ticket);
	request_release(q);
}

void request_give_up(struct zerocopy_request *q)
{
	if (ticket_try_close(&q->ticket)) {
		request_release(q);
		return;
	}
	request_unlink(q);
	q->connection = NULL;
	requests_add(&q->shared->given_up, q);
}

struct zerocopy_request *requests_next_done(struct zerocopy_shared *h)
{
	struct zerocopy_request *q;

	scoped_lock(&h->lock);
	q = h->done;
	if (q) {
		DL_DELETE2(h->done, q, prev_done, next_done);
		q->is_done = false;
	}
	return q;
}

void requests_wait(struct zerocopy_shared *h)
{
	while (h->given_up.list)
		request_free(h->given_up.list);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote source for tests: a file whose requests are answered in waves. A
 * wave is all requests up to a moment of no new requests, so that
 * the number of waves is the number of times that a single reader had to wait.
 */
#ifndef TESTS_UNIT_FAR_H
#define TESTS_UNIT_FAR_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/source/local/source.h"
#include "tests/unit/t.h"

struct far_counts {
	int64_t quiet_ns; /* set by the test: without new requests */
	unsigned fail;	  /* set by the test: one request of so many fails */
	pthread_mutex_t lock;
	unsigned waves;
	unsigned requests;
	unsigned largest;	  /* requests of one wave */
	uint64_t head;		  /* set by the test: bytes of the head */
	unsigned largest_of_head; /* requests of it in one wave */
	uint64_t bytes;
	bool is_shut; /* no wave is answered */
};

struct far {
	struct source base;
	struct far_counts *counts;
	pthread_cond_t changed;
	struct source_request *queue;
	int64_t last_ns; /* when a request came */
	bool stopping;
	pthread_t thread;
};

static inline void far_submit(struct source *source, struct source_request *q)
{
	struct far *f = (struct far *)source;

	scoped_lock(&f->counts->lock);
	q->queued = true;
	DL_APPEND(f->queue, q);
	f->last_ns = clock_ns();
	pthread_cond_signal(&f->changed);
}

static inline void far_cancel(struct source *source, struct source_request *q)
{
	struct far *f = (struct far *)source;
	bool queued;

	pthread_mutex_lock(&f->counts->lock);
	queued = q->queued;
	q->queued = false;
	if (queued)
		DL_DELETE(f->queue, q);
	pthread_mutex_unlock(&f->counts->lock);
	if (queued)
		q->done(q, -ECANCELED);
}

static inline int far_answer(struct far *f, struct source_request *q,
			     unsigned number)
{
	struct source *file = f->base.inner;
	uint64_t end = (uint64_t)f->base.stat.st_size, at = q->off;
	const struct iovec whole = { q->buf, q->size };
	const struct iovec *iov = q->buf ? &whole : q->iov;
	size_t need = q->need ? q->need : q->size, n;

	if (f->counts->fail && number % f->counts->fail == 0)
		return -EIO;
	if (q->off > end || need > end - q->off)
		return -EIO;
	for (unsigned i = 0; i < (q->buf ? 1 : q->iovcnt) && at < end; i++) {
		n = iov[i].iov_len < end - at ? iov[i].iov_len : end - at;
		CHECK(!source_read(file, iov[i].iov_base, n, at));
		at += n;
	}
	return 0;
}

/* Waits until no request has been made for a while. The caller holds the lock. */
static inline void far_settle(struct far *f)
{
	int64_t left = 1;

	while (!f->stopping && left > 0) {
		pthread_mutex_unlock(&f->counts->lock);
		usleep(f->counts->quiet_ns > 1000000 ? 1000 : 10);
		pthread_mutex_lock(&f->counts->lock);
		left = f->last_ns + f->counts->quiet_ns - clock_ns();
		if (f->counts->is_shut)
			left = 1;
	}
}

static inline void *far_run(void *arg)
{
	struct far *f = arg;
	struct source_request *q;
	unsigned n, of_head, number;

	pthread_mutex_lock(&f->counts->lock);
	while (!f->stopping) {
		if (!f->queue) {
			pthread_cond_wait(&f->changed, &f->counts->lock);
			continue;
		}
		far_settle(f);
		if (f->stopping)
			break;
		DL_COUNT(f->queue, q, n);
		f->counts->waves++;
		if (n > f->counts->largest)
			f->counts->largest = n;
		of_head = 0;
		DL_FOREACH(f->queue, q)
		of_head += q->off < f->counts->head;
		if (of_head > f->counts->largest_of_head)
			f->counts->largest_of_head = of_head;
		while (n-- && (q = f->queue)) {
			DL_DELETE(f->queue, q);
			q->queued = false;
			number = ++f->counts->requests;
			f->counts->bytes += q->size;
			pthread_mutex_unlock(&f->counts->lock);
			q->done(q, far_answer(f, q, number));
			pthread_mutex_lock(&f->counts->lock);
		}
	}
	pthread_mutex_unlock(&f->counts->lock);
	return NULL;
}

static inline void far_one_done(struct source_request *q, int result)
{
	*(int *)((void **)q->arg)[1] = result;
	source_wait_done(((void **)q->arg)[0]);
}

static inline int far_read(struct source *source, void *buf, size_t size,
			   uint64_t off)
{
	struct source_wait wait;
	int result = 0;
	void *arg[] = { &wait, &result };
	struct source_request q = { .buf = buf,
				    .size = size,
				    .off = off,
				    .done = far_one_done,
				    .arg = arg };

	source_wait_init(&wait);
	source_wait_add(&wait);
	far_submit(source, &q);
	source_wait_idle(&wait);
	source_wait_fini(&wait);
	return result;
}

static inline bool far_is_direct(const struct source *source)
{
	(void)source;
	return true;
}

static inline void far_close(struct source *source)
{
	struct far *f = (struct far *)source;
	struct source_request *q;

	pthread_mutex_lock(&f->counts->lock);
	f->stopping = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->counts->lock);
	pthread_join(f->thread, NULL);
	while ((q = f->queue)) {
		DL_DELETE(f->queue, q);
		q->queued = false;
		q->done(q, -ECANCELED);
	}
	pthread_cond_destroy(&f->changed);
	source_close(f->base.inner);
}

/* Takes over the file. The counts must outlive the source. */
static inline struct source *far_open(struct source *file,
				      struct far_counts *counts)
{
	static const struct source_ops ops = {
		.name = "far",
		.submit = far_submit,
		.cancel = far_cancel,
		.read = far_read,
		.is_direct = far_is_direct,
		.close = far_close,
	};
	struct far *f = calloc(1, sizeof(*f));

	CHECK(f);
	f->base.ops = &ops;
	f->base.path = strdup(file->path);
	f->base.log = file->log;
	f->base.stat = file->stat;
	f->base.inner = file;
	f->counts = counts;
	pthread_mutex_init(&counts->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	CHECK(!thread_start(&f->thread, far_run, f));
	return &f->base;
}

static inline unsigned far_waves(struct far_counts *counts)
{
	scoped_lock(&counts->lock);
	return counts->waves;
}

#endif

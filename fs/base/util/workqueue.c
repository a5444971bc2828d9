/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/workqueue.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

struct workqueue_slot {
	void *job;
	bool done;
	int error; /* of the job, once it is done */
};

struct workqueue_worker {
	struct workqueue *queue;
	void *state; /* the caller's */
	pthread_t thread;
};

/* Job i is in slot i modulo room; taken <= begun <= submitted. */
struct workqueue {
	struct workqueue_setup setup;
	struct workqueue_worker *workers;
	unsigned num_threads; /* that run */
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t work;  /* a job may begin, or threads may end */
	pthread_cond_t room;  /* a job may be submitted, or none ever */
	pthread_cond_t done;  /* the oldest job is done, or none follows */
	struct workqueue_slot *slots;
	uint64_t submitted;
	uint64_t begun;
	uint64_t taken;
	int error; /* of the first job that failed, or -ECANCELED */
	bool canceled;
	bool ended;
};

static struct workqueue_slot *slot_of(struct workqueue *q, uint64_t number)
{
	return &q->slots[number % q->setup.room];
}

/* Under the lock. */
static void wake_all(struct workqueue *q)
{
	pthread_cond_broadcast(&q->work);
	pthread_cond_broadcast(&q->room);
	pthread_cond_broadcast(&q->done);
}

/* Under the lock: 0, or ETIMEDOUT; `until` is NULL for no limit. */
static int wait_until(struct workqueue *q, pthread_cond_t *cond,
		      const struct timespec *until)
{
	return until ? pthread_cond_timedwait(cond, &q->lock, until)
		     : pthread_cond_wait(cond, &q->lock);
}

/* --- the threads --------------------------------------------------------- */

/* Waits for the oldest job not begun; NULL: the thread is to end. */
static struct workqueue_slot *begin_job(struct workqueue *q)
{
	scoped_lock(&q->lock);
	while (!q->error && !q->ended && q->begun == q->submitted)
		pthread_cond_wait(&q->work, &q->lock);
	if (q->error || q->begun == q->submitted)
		return NULL;
	return slot_of(q, q->begun++);
}

static void finish_job(struct workqueue *q, struct workqueue_slot *slot,
		       int error)
{
	scoped_lock(&q->lock);
	slot->error = error;
	slot->done = true;
	if (error && !q->error) {
		q->error = error;
		wake_all(q);
	} else if (slot == slot_of(q, q->taken)) {
		pthread_cond_signal(&q->done);
	}
}

static void *work(void *arg)
{
	struct workqueue_worker *w = arg;
	struct workqueue *q = w->queue;
	struct workqueue_slot *slot;

	/* The slot's job does not change before it is done and taken. */
	while ((slot = begin_job(q)))
		finish_job(q, slot, q->setup.run(w->state, slot->job));
	return NULL;
}

/* --- the caller ---------------------------------------------------------- */

int workqueue_submit(struct workqueue *q, void *job, int timeout_ms)
{
	struct timespec until = clock_in_ms(timeout_ms);
	int r = 0;

	scoped_lock(&q->lock);
	while (!q->error && q->submitted - q->taken == q->setup.room && !r)
		r = wait_until(q, &q->room, timeout_ms < 0 ? NULL : &until);
	if (q->error)
		return q->error;
	if (q->submitted - q->taken == q->setup.room)
		return -EAGAIN;
	*slot_of(q, q->submitted++) = (struct workqueue_slot){ .job = job };
	pthread_cond_signal(&q->work);
	return 0;
}

void workqueue_end(struct workqueue *q)
{
	scoped_lock(&q->lock);
	q->ended = true;
	wake_all(q);
}

/*
 * Under the lock: what a call of workqueue_take() returns now. Jobs begin in
 * order, so every job before one that failed will be done.
 */
static int take_job(struct workqueue *q, void **job)
{
	struct workqueue_slot *slot = slot_of(q, q->taken);

	if (q->canceled)
		return -ECANCELED;
	if (q->taken == q->submitted)
		return q->ended ? -ENODATA : -EAGAIN;
	if (!slot->done)
		return -EAGAIN;
	if (slot->error)
		return slot->error;
	*job = slot->job;
	q->taken++;
	pthread_cond_signal(&q->room);
	return 0;
}

int workqueue_take(struct workqueue *q, int timeout_ms, void **job)
{
	struct timespec until = clock_in_ms(timeout_ms);
	int timeout = 0, r;

	scoped_lock(&q->lock);
	while ((r = take_job(q, job)) == -EAGAIN && !timeout)
		timeout =
			wait_until(q, &q->done, timeout_ms < 0 ? NULL : &until);
	return r;
}

void workqueue_cancel(struct workqueue *q)
{
	scoped_lock(&q->lock);
	q->canceled = true;
	if (!q->error)
		q->error = -ECANCELED;
	wake_all(q);
}

/* --- opening and closing ------------------------------------------------- */

static int start_threads(struct workqueue *q)
{
	const struct workqueue_setup *s = &q->setup;

	for (unsigned i = 0; i < s->threads; i++) {
		struct workqueue_worker *w = &q->workers[i];
		int r;

		w->queue = q;
		w->state = (char *)s->workers + i * s->worker_size;
		r = thread_start(&w->thread, work, w);
		if (r)
			return r;
		q->num_threads++;
	}
	return 0;
}

int workqueue_open(const struct workqueue_setup *setup, struct workqueue **out)
{
	struct workqueue *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->setup = *setup;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->work, NULL);
	clock_cond_init(&q->room);
	clock_cond_init(&q->done);
	q->workers = calloc(setup->threads, sizeof(*q->workers));
	q->slots = calloc(setup->room, sizeof(*q->slots));
	r = q->workers && q->slots ? start_threads(q) : -ENOMEM;
	if (!q->num_threads) {
		workqueue_close(q);
		return r;
	}
	*out = q;
	return 0;
}

void workqueue_close(struct workqueue *q)
{
	if (!q)
		return;
	workqueue_cancel(q);
	for (unsigned i = 0; i < q->num_threads; i++)
		pthread_join(q->workers[i].thread, NULL);
	for (; q->setup.drop && q->taken < q->submitted; q->taken++)
		q->setup.drop(slot_of(q, q->taken)->job);
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->room);
	pthread_cond_destroy(&q->done);
	pthread_mutex_destroy(&q->lock);
	free(q->workers);
	free(q->slots);
	free(q);
}

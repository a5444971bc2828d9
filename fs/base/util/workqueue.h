/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of jobs that several threads run in parallel. The results come out in
 * the order in which the jobs were submitted, however long each job takes.
 *
 * The queue holds at most `room` jobs: those submitted and not yet taken. One
 * thread submits and one thread takes; both may be the same thread, which then
 * submits only while there is room. Any thread may cancel.
 */
#ifndef FS_BASE_UTIL_WORKQUEUE_H
#define FS_BASE_UTIL_WORKQUEUE_H

#include <stddef.h>

struct workqueue;

/*
 * Does a job. `worker` is the calling thread's element of the array of workers.
 * -errno ends the queue: no other job begins. -EAGAIN, -ENODATA and -ECANCELED
 * are the queue's own.
 */
typedef int workqueue_fn(void *worker, void *job);

struct workqueue_setup {
	workqueue_fn *run;
	/* Frees a job that the queue still holds when it is closed; NULL if
	   there is nothing to free. */
	void (*drop)(void *job);
	void *workers; /* array of `threads` elements; the caller's */
	size_t worker_size;
	unsigned threads; /* at least 1, as room */
	size_t room;
};

/* Starts the threads. If the system refuses some of them, the queue runs with
   fewer; if it refuses all, returns -errno. */
int workqueue_open(const struct workqueue_setup *setup, struct workqueue **out);

/*
 * Gives a job to the queue, which owns it until it is taken; on failure it
 * stays the caller's. Waits for room up to `timeout_ms`; -1: without limit.
 * -EAGAIN: no room in that time. -ECANCELED: the queue was canceled. Another
 * -errno: a job failed.
 */
int workqueue_submit(struct workqueue *q, void *job, int timeout_ms);

/* Announces that no job follows. */
void workqueue_end(struct workqueue *q);

/*
 * Returns the oldest job when it is done; the job is then the caller's. Waits
 * up to `timeout_ms`; -1: without limit. -EAGAIN: not done in that time.
 * -ENODATA: workqueue_end() was called and all jobs were taken. -ECANCELED: the
 * queue was canceled. Another -errno: this job failed; jobs before it have been
 * returned, and every later call returns the same error.
 */
int workqueue_take(struct workqueue *q, int timeout_ms, void **job);

/* Ends all waiting; jobs that are running end by themselves. */
void workqueue_cancel(struct workqueue *q);

/*
 * Cancels, waits for the running jobs and drops all jobs that were not taken.
 * No other call may be under way. Takes NULL.
 */
void workqueue_close(struct workqueue *q);

#endif

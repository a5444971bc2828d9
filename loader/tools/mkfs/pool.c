/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/workqueue.h"

enum { WINDOW_PER_THREAD = 4 };

/* A sample to make, and the result. */
struct pool_job {
	uint64_t number; /* in the shard */
	struct made made;
};

struct pool_worker {
	const struct mkfs_work *work;
	struct encoder *encoder;
	struct input_reader *reader;
	struct input_value *values;
};

/* The job of sample i is at index i modulo `window`. */
struct mkfs_pool {
	const struct mkfs_work *work;
	unsigned num_workers;
	struct pool_worker *workers;
	struct workqueue *queue;
	uint64_t window;
	struct pool_job *jobs;
	uint64_t submitted;
	uint64_t given;
};

/* A bad sample is a result, too: the caller decides whether it ends the run. */
static int make_job(void *arg, void *job_arg)
{
	struct pool_worker *w = arg;
	struct pool_job *job = job_arg;
	const struct mkfs_work *work = w->work;
	struct input *in = work->mapping->input;
	struct input_error error = { 0 };
	int r;

	memset(w->values, 0, in->num_fields * sizeof(*w->values));
	r = in->kind->read(w->reader,
			   selection_at(work->selection, job->number),
			   work->mapping->wanted, w->values, &error);
	if (r) {
		job->made = (struct made){ .status = r, .error = error };
		return 0;
	}
	mapping_make(work->mapping, w->encoder, w->values,
		     work->selection->first + job->number, &job->made);
	if (!job->made.status && work->check)
		work->check(work->arg, &job->made);
	return 0;
}

/* The queue drops only jobs of `pool->jobs`, which mkfs_pool_close() frees. */
static void free_jobs(struct mkfs_pool *pool)
{
	for (uint64_t i = pool->given; i < pool->submitted; i++)
		made_fini(pool->work->mapping,
			  &pool->jobs[i % pool->window].made);
	free(pool->jobs);
}

/* Submits as many samples as the window has room for. */
static int submit_samples(struct mkfs_pool *pool)
{
	int r = 0;

	while (!r && pool->submitted < pool->work->selection->count &&
	       pool->submitted < pool->given + pool->window) {
		struct pool_job *job =
			&pool->jobs[pool->submitted % pool->window];

		*job = (struct pool_job){ .number = pool->submitted };
		r = workqueue_submit(pool->queue, job, 0);
		pool->submitted += !r;
	}
	return r;
}

int mkfs_pool_next(struct mkfs_pool *pool, int timeout_ms, struct made *out)
{
	void *job;
	int r;

	if (pool->given == pool->work->selection->count)
		return -ENODATA;
	r = submit_samples(pool);
	r = r ? r : workqueue_take(pool->queue, timeout_ms, &job);
	if (r)
		return r;
	*out = ((struct pool_job *)job)->made;
	pool->given++;
	return 0;
}

static int open_worker(struct mkfs_pool *pool, struct pool_worker *w)
{
	struct input *in = pool->work->mapping->input;
	int r;

	w->work = pool->work;
	w->values = calloc(in->num_fields + 1, sizeof(*w->values));
	r = w->values ? encoder_open(pool->work->recipe, &w->encoder) : -ENOMEM;
	return r ? r : in->kind->reader_open(in, &w->reader);
}

static int open_workers(struct mkfs_pool *pool, unsigned threads)
{
	int r = 0;

	for (unsigned i = 0; i < threads && !r; i++) {
		pool->num_workers++;
		r = open_worker(pool, &pool->workers[i]);
	}
	return r;
}

static int open_queue(struct mkfs_pool *pool)
{
	struct workqueue_setup setup = {
		.run = make_job,
		.workers = pool->workers,
		.worker_size = sizeof(*pool->workers),
		.threads = pool->num_workers,
		.room = pool->window,
	};

	return workqueue_open(&setup, &pool->queue);
}

int mkfs_pool_open(const struct mkfs_work *work, unsigned threads,
		   struct mkfs_pool **out)
{
	struct mkfs_pool *pool = calloc(1, sizeof(*pool));
	int r;

	if (!pool)
		return -ENOMEM;
	pool->work = work;
	pool->window = (uint64_t)WINDOW_PER_THREAD * threads;
	pool->workers = calloc(threads, sizeof(*pool->workers));
	pool->jobs = calloc(pool->window, sizeof(*pool->jobs));
	r = pool->workers && pool->jobs ? open_workers(pool, threads) : -ENOMEM;
	r = r ? r : open_queue(pool);
	if (r) {
		mkfs_pool_close(pool);
		return r;
	}
	*out = pool;
	return 0;
}

void mkfs_pool_close(struct mkfs_pool *pool)
{
	if (!pool)
		return;
	workqueue_close(pool->queue);
	if (pool->jobs)
		free_jobs(pool);
	for (unsigned i = 0; i < pool->num_workers; i++) {
		struct pool_worker *w = &pool->workers[i];

		pool->work->mapping->input->kind->reader_close(w->reader);
		encoder_close(w->encoder);
		free(w->values);
	}
	free(pool->workers);
	free(pool);
}

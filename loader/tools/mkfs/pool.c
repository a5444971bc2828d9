/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/pool.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/util/workqueue.h"

enum { WINDOW_PER_THREAD = 4 };

/* An image to encode, and the result. */
struct job {
	uint64_t number;
	struct encoded sample;
};

struct worker {
	const struct mkfs_plan *plan;
	struct encoder *encoder;
};

/* The job of image i is at index i modulo `window`. */
struct mkfs_pool {
	const struct mkfs_plan *plan;
	unsigned num_workers;
	struct worker *workers;
	struct workqueue *queue;
	uint64_t window;
	struct job *jobs;
	uint64_t submitted;
	uint64_t given;
};

const struct scan_file *mkfs_plan_file(const struct mkfs_plan *plan,
				       uint64_t number)
{
	uint64_t i =
		plan->shuffle ? permutation_at(&plan->order, number) : number;

	return &plan->scan->files[i];
}

/* A bad image is a result too: the caller decides whether it ends the run. */
static int encode_job(void *arg, void *job_arg)
{
	struct worker *w = arg;
	struct job *job = job_arg;

	encode(w->encoder, mkfs_plan_file(w->plan, job->number)->path,
	       job->number, &job->sample);
	return 0;
}

static void drop_job(void *arg)
{
	struct job *job = arg;

	free(job->sample.bytes);
}

/* Submits as many images as the window has room for. */
static int submit_images(struct mkfs_pool *pool)
{
	int r = 0;

	while (!r && pool->submitted < pool->plan->count &&
	       pool->submitted < pool->given + pool->window) {
		struct job *job = &pool->jobs[pool->submitted % pool->window];

		*job = (struct job){ .number = pool->submitted };
		r = workqueue_submit(pool->queue, job, 0);
		pool->submitted += !r;
	}
	return r;
}

int mkfs_pool_next(struct mkfs_pool *pool, int timeout_ms, struct encoded *out)
{
	void *job;
	int r;

	if (pool->given == pool->plan->count)
		return -ENODATA;
	r = submit_images(pool);
	r = r ? r : workqueue_take(pool->queue, timeout_ms, &job);
	if (r)
		return r;
	*out = ((struct job *)job)->sample;
	pool->given++;
	return 0;
}

static int open_workers(struct mkfs_pool *pool, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &pool->workers[i];
		int r = encoder_open(pool->plan->recipe, &w->encoder);

		if (r)
			return r;
		w->plan = pool->plan;
		pool->num_workers++;
	}
	return 0;
}

static int open_queue(struct mkfs_pool *pool)
{
	struct workqueue_setup setup = {
		.run = encode_job,
		.drop = drop_job,
		.workers = pool->workers,
		.worker_size = sizeof(*pool->workers),
		.threads = pool->num_workers,
		.room = pool->window,
	};

	return workqueue_open(&setup, &pool->queue);
}

int mkfs_pool_open(const struct mkfs_plan *plan, unsigned threads,
		   struct mkfs_pool **out)
{
	struct mkfs_pool *pool = calloc(1, sizeof(*pool));
	int r;

	if (!pool)
		return -ENOMEM;
	pool->plan = plan;
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
	for (unsigned i = 0; i < pool->num_workers; i++)
		encoder_close(pool->workers[i].encoder);
	free(pool->jobs);
	free(pool->workers);
	free(pool);
}

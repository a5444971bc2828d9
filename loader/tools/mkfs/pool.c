/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "fs/util/cleanup.h"
#include "fs/util/clock.h"

enum { WINDOW_PER_THREAD = 4 };

struct slot {
	struct encoded sample;
	bool ready;
};

struct worker {
	struct mkfs_pool *pool;
	struct encoder *encoder;
	pthread_t thread;
};

/* The slot of image i is i modulo `window`. */
struct mkfs_pool {
	const struct mkfs_plan *plan;
	unsigned num_threads; /* that run */
	unsigned num_workers;
	struct worker *workers;
	uint64_t window;
	pthread_mutex_t lock;
	pthread_cond_t ready; /* the slot of `given` is */
	pthread_cond_t room;  /* `taken` may go on, or stop */
	struct slot *slots;   /* guarded by lock unless being filled */
	uint64_t taken;	      /* guarded by lock, as the next two */
	uint64_t given;
	bool stop;
};

const struct scan_file *mkfs_plan_file(const struct mkfs_plan *plan,
				       uint64_t number)
{
	uint64_t i =
		plan->shuffle ? permutation_at(&plan->order, number) : number;

	return &plan->scan->files[i];
}

/* Takes the next image to encode; false: there is nothing more to do. */
static bool take(struct mkfs_pool *pool, uint64_t *number)
{
	scoped_lock(&pool->lock);
	while (!pool->stop && pool->taken < pool->plan->count &&
	       pool->taken >= pool->given + pool->window)
		pthread_cond_wait(&pool->room, &pool->lock);
	if (pool->stop || pool->taken == pool->plan->count)
		return false;
	*number = pool->taken++;
	return true;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct mkfs_pool *pool = w->pool;
	uint64_t i = 0;

	while (take(pool, &i)) {
		struct slot *slot = &pool->slots[i % pool->window];

		encode(w->encoder, mkfs_plan_file(pool->plan, i)->path, i,
		       &slot->sample);
		scoped_lock(&pool->lock);
		slot->ready = true;
		if (i == pool->given)
			pthread_cond_signal(&pool->ready);
	}
	return NULL;
}

int mkfs_pool_next(struct mkfs_pool *pool, int timeout_ms, struct encoded *out)
{
	struct timespec until = clock_in_ms(timeout_ms);
	struct slot *slot;
	int r = 0;

	scoped_lock(&pool->lock);
	if (pool->given == pool->plan->count)
		return -ENODATA;
	slot = &pool->slots[pool->given % pool->window];
	while (!slot->ready && !r)
		r = pthread_cond_timedwait(&pool->ready, &pool->lock, &until);
	if (!slot->ready)
		return -EAGAIN;
	*out = slot->sample;
	slot->ready = false;
	pool->given++;
	pthread_cond_signal(&pool->room);
	return 0;
}

static void init_locks(struct mkfs_pool *pool)
{
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->room, NULL);
	clock_cond_init(&pool->ready);
}

static int start(struct mkfs_pool *pool, unsigned threads)
{
	int r;

	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &pool->workers[i];

		w->pool = pool;
		r = encoder_open(pool->plan->recipe, &w->encoder);
		if (r)
			return r;
		pool->num_workers++;
		r = pthread_create(&w->thread, NULL, work, w);
		if (r)
			return -r;
		pool->num_threads++;
	}
	return 0;
}

int mkfs_pool_open(const struct mkfs_plan *plan, unsigned threads,
		   struct mkfs_pool **out)
{
	struct mkfs_pool *pool = calloc(1, sizeof(*pool));
	int r = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->plan = plan;
	pool->window = (uint64_t)WINDOW_PER_THREAD * threads;
	init_locks(pool);
	pool->workers = calloc(threads, sizeof(*pool->workers));
	pool->slots = calloc(pool->window, sizeof(*pool->slots));
	if (pool->workers && pool->slots)
		r = start(pool, threads);
	if (r) {
		mkfs_pool_close(pool);
		return r;
	}
	*out = pool;
	return 0;
}

static void stop(struct mkfs_pool *pool)
{
	scoped_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->room);
}

void mkfs_pool_close(struct mkfs_pool *pool)
{
	if (!pool)
		return;
	stop(pool);
	for (unsigned i = 0; i < pool->num_threads; i++)
		pthread_join(pool->workers[i].thread, NULL);
	for (unsigned i = 0; i < pool->num_workers; i++)
		encoder_close(pool->workers[i].encoder);
	for (uint64_t i = 0; pool->slots && i < pool->window; i++) {
		if (pool->slots[i].ready)
			free(pool->slots[i].sample.bytes);
	}
	pthread_cond_destroy(&pool->ready);
	pthread_cond_destroy(&pool->room);
	pthread_mutex_destroy(&pool->lock);
	free(pool->slots);
	free(pool->workers);
	free(pool);
}

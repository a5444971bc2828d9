/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/fuse/workers.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/mount/fuse/uring.h"

enum {
	/* Milliseconds that a thread waits although there are enough others. */
	IDLE_MS = 1000,
	CPUS_MAX = 1 << 16,
};

struct workers {
	unsigned most_threads;
	unsigned idle_threads; /* as many may wait for requests */
	void (*run)(void *arg, struct uring_entry *entry);
	void *arg;
	cpu_set_t *cpus; /* of the threads; NULL: unknown */
	size_t cpus_size;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	pthread_cond_t ended;
	struct uring_entry *first, **last; /* queued */
	unsigned num_queued;
	unsigned num_idle;
	unsigned num_threads;
	bool stopping;
	/* The thread that ended last. The next one joins it. */
	pthread_t dead;
	bool has_dead;
};

/* Waits until there is a request, or the end. Returns false if there was none
   for long, and enough other threads wait. The caller holds the lock. */
static bool wait_for_request(struct workers *w)
{
	const struct timespec end = clock_in_ms(IDLE_MS);
	int r = 0;

	w->num_idle++;
	while (!w->first && !w->stopping &&
	       (!r || w->num_idle <= w->idle_threads))
		r = r ? pthread_cond_wait(&w->changed, &w->lock)
		      : pthread_cond_timedwait(&w->changed, &w->lock, &end);
	w->num_idle--;
	return w->first || w->stopping;
}

/* Returns the oldest request; NULL: the thread is to end. The caller holds the
   lock. */
static struct uring_entry *next_request(struct workers *w)
{
	struct uring_entry *entry;

	if (!w->first && !w->stopping && !wait_for_request(w))
		return NULL;
	if (w->stopping)
		return NULL;
	entry = w->first;
	w->first = entry->next;
	if (!w->first)
		w->last = &w->first;
	w->num_queued--;
	return entry;
}

/* --- CPUs ---
 * Requests are pushed by threads that are bound to one CPU each, and a thread
 * inherits this from the one that starts it. The same holds for threads that
 * the workers start, such as those of an engine. */

static void note_cpus(struct workers *w)
{
	for (int n = CPU_SETSIZE; n <= CPUS_MAX && !w->cpus; n *= 2) {
		w->cpus_size = CPU_ALLOC_SIZE(n);
		w->cpus = CPU_ALLOC(n);
		if (w->cpus && sched_getaffinity(0, w->cpus_size, w->cpus)) {
			CPU_FREE(w->cpus);
			w->cpus = NULL;
		}
	}
}

/* If it fails, the process may no longer use these CPUs. */
static void use_all_cpus(const struct workers *w)
{
	if (w->cpus)
		sched_setaffinity(0, w->cpus_size, w->cpus);
}

/* --- threads --- */

/* A thread joins the one that ended before it, so that none is detached. */
static void *serve_requests(void *arg)
{
	struct workers *w = arg;
	struct uring_entry *entry;
	pthread_t before;
	bool has_before;

	use_all_cpus(w);
	pthread_mutex_lock(&w->lock);
	while ((entry = next_request(w))) {
		pthread_mutex_unlock(&w->lock);
		w->run(w->arg, entry);
		pthread_mutex_lock(&w->lock);
	}
	before = w->dead;
	has_before = w->has_dead;
	w->dead = pthread_self();
	w->has_dead = true;
	w->num_threads--;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	if (has_before)
		pthread_join(before, NULL);
	return NULL;
}

/* The caller holds the lock. Returns whether there is a thread. */
static bool need_thread(struct workers *w)
{
	pthread_t thread;

	if (w->num_queued > w->num_idle && w->num_threads < w->most_threads &&
	    !thread_start(&thread, serve_requests, w))
		w->num_threads++;
	return w->num_threads;
}

static int queue_request(struct workers *w, struct uring_entry *entry)
{
	scoped_lock(&w->lock);
	if (w->stopping)
		return -ENOTCONN;
	w->num_queued++;
	if (!need_thread(w)) {
		w->num_queued--;
		return -EAGAIN;
	}
	entry->next = NULL;
	*w->last = entry;
	w->last = &entry->next;
	return 0;
}

int workers_push(struct workers *w, struct uring_entry *entry)
{
	int r = queue_request(w, entry);

	/* A thread that woke up earlier would sleep again, at the lock. */
	if (!r)
		pthread_cond_signal(&w->changed);
	return r;
}

int workers_open(unsigned most_threads, unsigned idle_threads,
		 void (*run)(void *arg, struct uring_entry *entry), void *arg,
		 struct workers **out)
{
	struct workers *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->most_threads = most_threads;
	w->idle_threads = idle_threads;
	w->run = run;
	w->arg = arg;
	w->last = &w->first;
	note_cpus(w);
	pthread_mutex_init(&w->lock, NULL);
	clock_cond_init(&w->changed);
	pthread_cond_init(&w->ended, NULL);
	*out = w;
	return 0;
}

void workers_stop(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->changed);
	while (w->num_threads)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (w->has_dead)
		pthread_join(w->dead, NULL);
	w->has_dead = false;
}

void workers_close(struct workers *w)
{
	if (!w)
		return;
	pthread_cond_destroy(&w->ended);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	if (w->cpus)
		CPU_FREE(w->cpus);
	free(w);
}

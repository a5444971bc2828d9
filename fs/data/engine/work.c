/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

/* The most expected batches of all readers together. */
enum { COMING_MAX = 64 };

/* The user of prefetching, for which no reader waits yet. */
#define USER_PREFETCH UINT64_MAX

struct work {
	struct work_options options;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t queued;
	pthread_cond_t finished; /* a task is done */
	struct lanes lanes;
	struct coming coming[COMING_MAX]; /* the oldest first */
	unsigned num_coming;
	bool is_untidy;	 /* there may be something that no reader wants */
	bool is_watched; /* a thread will call tidy() */
	bool stopping;
	unsigned idle; /* threads that wait for work */
	pthread_t *threads;
	unsigned num_threads;
	unsigned max_threads;
};

int work_open(const struct work_options *options, struct work **out)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->options = *options;
	w->lanes.width = options->width;
	pthread_mutex_init(&w->lock, NULL);
	clock_cond_init(&w->queued);
	pthread_cond_init(&w->finished, NULL);
	*out = w;
	return 0;
}

void work_close(struct work *w)
{
	if (!w)
		return;
	work_stop(w);
	pthread_cond_destroy(&w->finished);
	pthread_cond_destroy(&w->queued);
	pthread_mutex_destroy(&w->lock);
	free(w->threads);
	free(w);
}

/* --- threads; with the lock held --- */

/* An index in work.coming; num_coming: there is none to begin. */
static unsigned coming_with_room(const struct work *w)
{
	unsigned i = 0;

	while (i < w->num_coming &&
	       !lanes_have_room(&w->lanes, w->coming[i].ds))
		i++;
	return i;
}

static void *run_thread(void *arg);

/* Wakes or starts a thread if there is something to do. */
static void rouse(struct work *w)
{
	if (w->stopping ||
	    (!lanes_next(&w->lanes) && coming_with_room(w) == w->num_coming))
		return;
	/* If no thread can be started, those that work do this later. */
	if (w->idle)
		pthread_cond_signal(&w->queued);
	else if (w->num_threads < w->max_threads &&
		 !thread_start(&w->threads[w->num_threads], run_thread, w))
		w->num_threads++;
}

static void task_once(struct work *w, struct lane *lane,
		      struct trace_track *track)
{
	struct task *t = lane->queue;

	DL_DELETE(lane->queue, t);
	t->state = TASK_RUNNING;
	lane_enter(&w->lanes, lane);
	rouse(w);
	pthread_mutex_unlock(&w->lock);
	w->options.run(t, track);
	pthread_mutex_lock(&w->lock);
	t->state = TASK_DONE;
	pthread_cond_broadcast(&w->finished);
	lane_leave(&w->lanes, lane);
}

static void coming_once(struct work *w, unsigned i)
{
	struct coming coming = w->coming[i];
	struct lane *lane = lane_need(&w->lanes, coming.ds, USER_PREFETCH);

	memmove(&w->coming[i], &w->coming[i + 1],
		(--w->num_coming - i) * sizeof(*w->coming));
	/* If memory is short, the batch is not prefetched. */
	if (!lane)
		return;
	lane_enter(&w->lanes, lane);
	rouse(w);
	pthread_mutex_unlock(&w->lock);
	w->options.prepare(w->options.arg, &coming);
	pthread_mutex_lock(&w->lock);
	lane_leave(&w->lanes, lane);
}

/* Runs one piece of work, first that for which a reader waits. The caller holds
   the lock, which this function releases meanwhile. Returns false if there is
   no work; then it has held the lock throughout. */
static bool work_once(struct work *w, struct trace_track *track)
{
	struct lane *lane = lanes_next(&w->lanes);
	unsigned i = coming_with_room(w);
	bool has_coming = i < w->num_coming;

	if (lane)
		task_once(w, lane, track);
	else if (has_coming)
		coming_once(w, i);
	return lane || has_coming;
}

/* Waits for work, with the lock held. One of the waiting threads frees what no
   reader wants after a while. */
static void wait_for_work(struct work *w)
{
	struct timespec end;
	bool is_left;

	if (!w->is_untidy || w->is_watched) {
		pthread_cond_wait(&w->queued, &w->lock);
		return;
	}
	w->is_watched = true;
	end = clock_in_ms((w->options.patience_s + 1) * 1000);
	if (pthread_cond_timedwait(&w->queued, &w->lock, &end) == ETIMEDOUT) {
		/* Clear the flag first, because the search may miss what is
		   added meanwhile. */
		w->is_untidy = false;
		pthread_mutex_unlock(&w->lock);
		is_left = w->options.tidy(w->options.arg);
		pthread_mutex_lock(&w->lock);
		w->is_untidy |= is_left;
	}
	w->is_watched = false;
}

static void *run_thread(void *arg)
{
	struct work *w = arg;
	struct trace_track *track = trace_add(w->options.trace, "beton engine");

	trace_here(track);
	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		if (work_once(w, track))
			continue;
		w->idle++;
		wait_for_work(w);
		w->idle--;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int work_start(struct work *w)
{
	int r = 0;

	w->max_threads = w->options.width + w->options.more;
	w->threads = calloc(w->max_threads, sizeof(*w->threads));
	if (!w->threads)
		return -ENOMEM;
	scoped_lock(&w->lock);
	for (; w->num_threads < w->options.width && !r; w->num_threads += !r)
		r = thread_start(&w->threads[w->num_threads], run_thread, w);
	return r;
}

void work_stop(struct work *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->queued);
	pthread_mutex_unlock(&w->lock);
	for (; w->num_threads; w->num_threads--)
		pthread_join(w->threads[w->num_threads - 1], NULL);
}

/* --- requests for work --- */

bool work_submit(struct work *w, struct task *t, struct dataset *ds,
		 uint64_t user)
{
	scoped_lock(&w->lock);
	t->lane = lane_need(&w->lanes, ds, user);
	if (!t->lane)
		return false;
	DL_APPEND(t->lane->queue, t);
	rouse(w);
	return true;
}

bool work_withdraw(struct work *w, struct task *t, bool waits)
{
	scoped_lock(&w->lock);
	if (t->state == TASK_QUEUED) {
		DL_DELETE(t->lane->queue, t);
		lane_drop(&w->lanes, t->lane);
	}
	while (t->state == TASK_RUNNING && waits)
		pthread_cond_wait(&w->finished, &w->lock);
	return t->state != TASK_RUNNING;
}

/* The caller holds the lock. */
static bool is_expected(const struct work *w, const struct coming *c)
{
	for (unsigned i = 0; i < w->num_coming; i++) {
		const struct coming *other = &w->coming[i];

		if (other->number == c->number && other->epoch == c->epoch &&
		    other->ds == c->ds && spec_equal(&other->spec, &c->spec))
			return true;
	}
	return false;
}

void work_expect(struct work *w, const struct coming *c)
{
	scoped_lock(&w->lock);
	if (w->num_coming == COMING_MAX || is_expected(w, c))
		return;
	w->coming[w->num_coming++] = *c;
	rouse(w);
}

void work_note_untidy(struct work *w)
{
	scoped_lock(&w->lock);
	if (!w->is_untidy)
		pthread_cond_signal(&w->queued);
	w->is_untidy = true;
}

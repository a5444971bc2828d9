/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/float_mode.h"
#include "fs/base/util/thread.h"
#include "loader/run/loop/step_row.h"
#include "loader/run/ring/failure.h"
#include "loader/run/ring/residence.h"

/* If rows are short, a worker takes more than RING_ROWS of them, because each
   time costs a lock. */
enum { SHORT_ROWS = 64 };

/* Least duration of rows to time one by one, because reading the clock takes
   time too. */
enum { LONG_ROW_NS = 8000 };

/* Least duration of a span in a trace. Shorter spans are joined, so that
   tracing costs at most a few percent of the time. */
enum { SPAN_NS = 50000 };

struct worker {
	struct ring *ring;
	pthread_t thread;
	struct stage_lane *lane;
	struct pipeline_worker *pipeline;
	bool has_long_rows; /* in its last rows */
};

/* Stores the message of the failed row with the lowest number, for all workers.
   Returns whether to log it. */
static bool store_failed_row(struct ring *ring, struct turn *t,
			     const struct step_failure *f)
{
	struct step *s = t->step;

	turns_scope(ring);
	if (f->row < s->failed_row) {
		s->failed_row = f->row;
		s->read_error = f->error;
		snprintf(s->message, sizeof(s->message), "%.200s: %s",
			 ring->options.feed->path, f->why);
		if (ring->options.plan.on_error == BETON_ON_ERROR_RAISE)
			t->error = step_errno(s);
	}
	if (!losses_have(&ring->losses, f->error))
		return true;
	s->lost++;
	return losses_add(&ring->losses);
}

static void note_failed_row(struct ring *ring, struct turn *t,
			    const struct step_failure *f)
{
	if (store_failed_row(ring, t, f))
		log_error(ring->options.log, "%s: %s", ring->options.feed->path,
			  f->why);
}

/* Stores a failure `r` of step_join(). Called without the lock. */
static void note_join(struct ring *ring, struct turn *t, int r)
{
	if (!r)
		return;
	failure_note(ring, t, t->step->batch.epoch, t->step->batch.number, r,
		     false);
	turns_lock(ring);
	if (!t->error)
		t->error = r;
	turns_unlock(ring);
}

/* Runs rows and adds their time to *times. Called without the lock. */
static void run_rows(struct worker *w, struct turn *t, uint32_t first,
		     uint32_t n, struct throughput_times *times)
{
	struct ring *ring = w->ring;
	const struct beton_batch *batch = &t->step->batch;
	/* Trace viewers nest a span in another one that begins earlier. */
	uint64_t begin = stage_now_ns(), at = begin + 1, now;
	struct stage_cost cost = { .decode_ns = 0 };
	bool looks = w->has_long_rows || w->lane->track;
	uint64_t least = w->lane->track ? SPAN_NS : 0;
	struct step_failure failure;
	uint32_t from = 0;

	/* The user's callbacks run in this thread, too. */
	float_mode_reset();
	turns_push_range(ring, "beton samples");
	for (uint32_t i = 0; i < n; i++) {
		if (step_run_row(t->step, &ring->options.plan, w->pipeline,
				 first + i, &failure, &cost))
			note_failed_row(ring, t, &failure);
		if (!looks && i + 1 < n)
			continue;
		now = stage_now_ns();
		if (now - at < least && i + 1 < n)
			continue;
		stage_rows(w->lane, batch->ids + first + from,
			   t->step->is_second ? 0 : i + 1 - from, at, now,
			   &cost);
		times->decode_ns += cost.decode_ns;
		cost = (struct stage_cost){ .decode_ns = 0 };
		from = i + 1;
		at = now;
	}
	times->busy_ns += at - begin;
	w->has_long_rows = at - begin >= (uint64_t)n * LONG_ROW_NS;
	trace_span(w->lane->track, TRACE_SAMPLES, begin, at, batch->number,
		   first);
	if (step_rows_done(t->step, n)) {
		note_join(ring, t, step_join(t->step, &ring->options.plan));
		if (!t->step->keeps_input)
			feed_release(ring->options.feed, &t->step->input);
	}
	turns_pop_range(ring);
}

/* Runs the user's callback, if there is one, on a turn with complete rows.
   Called with the lock, which it releases meanwhile. */
static int run_callback(struct worker *w, struct turn *t)
{
	struct ring *ring = w->ring;
	const struct beton_batch *batch = &t->step->batch;
	uint64_t busy_ns = 0;
	char why[FAILURE_WHY_SIZE];
	int r;

	if (!ring->options.callback || t->error || turn_is_stale(ring, t))
		return 0;
	t->state = TURN_FINISHING;
	turns_unlock(ring);
	turns_push_range(ring, "beton callback");
	r = callback_run(ring->options.callback, batch, w->lane, &busy_ns, why,
			 sizeof(why));
	turns_pop_range(ring);
	if (r)
		failure_note_reason(ring, t, batch->epoch, batch->number,
				    *why ? why : strerror(-r));
	turns_lock(ring);
	t->times.busy_ns += busy_ns;
	return r;
}

/* Starts the upload of a turn with complete rows, if it has outputs on a GPU.
   Called with the lock, which it releases meanwhile. */
static int start_upload(struct worker *w, struct turn *t)
{
	struct ring *ring = w->ring;
	uint64_t before, after, bytes;
	int r;

	if (!t->step->parcel || t->error || turn_is_stale(ring, t))
		return 0;
	t->state = TURN_FINISHING;
	turns_unlock(ring);
	before = stage_now_ns();
	r = step_start(t->step);
	bytes = device_batch_size(t->step->parcel);
	after = stage_now_ns();
	counters_items_own(&w->lane->stages[STAGE_UPLOAD], 1, bytes,
			   after - before);
	trace_span(w->lane->track, TRACE_UPLOAD, before, after,
		   t->step->batch.number, bytes);
	if (r)
		failure_note(ring, t, t->step->batch.epoch,
			     t->step->batch.number, r, true);
	turns_lock(ring);
	return r;
}

/* Returns the number of rows that the worker takes at a time from this turn. */
static uint32_t rows_at_a_time(const struct worker *w, const struct turn *t)
{
	uint32_t left = t->step->batch.num_samples - t->next_row;
	uint32_t share = left / (2 * w->ring->options.workers);

	if (w->has_long_rows || share < RING_ROWS)
		return (uint32_t)min_u64(RING_ROWS, left);
	return (uint32_t)min_u64(SHORT_ROWS, share);
}

/* Takes some rows of a turn and runs them. Called with the lock, which it
   releases meanwhile. */
static void run_turn(struct worker *w, struct turn *t)
{
	struct ring *ring = w->ring;
	struct throughput_times times = { .busy_ns = 0 };
	uint32_t first = t->next_row;
	uint32_t n = residence_limit(ring, t, rows_at_a_time(w, t));
	int r;

	t->next_row += n;
	ring->running++;
	residence_grant(ring, t);
	turns_unlock(ring);
	run_rows(w, t, first, n, &times);
	turns_lock(ring);
	t->times.busy_ns += times.busy_ns;
	t->times.decode_ns += times.decode_ns;
	t->rows_left -= n;
	ring->running--;
	if (t->rows_left)
		return;
	if (!t->error && !turn_is_stale(ring, t) && step_next_round(t->step)) {
		turn_begin_rows(ring, t);
		return;
	}
	turn_give_input(ring, t);
	r = run_callback(w, t);
	t->times.made_ns = stage_now_ns();
	turn_finish(ring, t, r ? r : start_upload(w, t));
}

/* While the fetching thread fetches a batch, counts the wait as a wait for
   input. Otherwise the user has to take a batch first, so counts it as a wait
   for room. */
static void wait_for_rows(struct worker *w)
{
	struct counters *decode = &w->lane->stages[STAGE_DECODE];
	struct ring *ring = w->ring;
	const struct turn *t;
	bool comes = false;

	DL_FOREACH(ring->turns, t)
	{
		comes |= t->state == TURN_FETCHING || t->state == TURN_REMOTE;
	}
	residence_wait(ring,
		       comes ? &decode->input_wait_ns : &decode->room_wait_ns);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct ring *ring = w->ring;
	struct turn *t;
	const struct step_plan *plan = &ring->options.plan;
	/* `whole` uses all parts of a worker. */
	int r = pipeline_worker_open(
		phases_row(plan->whole ? plan->whole : plan->phases, 0),
		&w->pipeline);

	trace_here(w->lane->track);
	turns_lock(ring);
	if (r)
		turns_give_up(ring, r);
	while (!ring->stopping && !r) {
		t = residence_find_rows(ring);
		if (t)
			run_turn(w, t);
		else
			wait_for_rows(w);
	}
	turns_unlock(ring);
	pipeline_worker_close(w->pipeline);
	return NULL;
}

static int start_worker(struct ring *ring, uint32_t i)
{
	struct worker *w = &ring->workers[i];

	w->ring = ring;
	w->lane = &ring->lanes[LANE_WORKERS + i];
	w->has_long_rows = true; /* initial value, until the worker has timed
				    its first rows */
	return thread_start(&w->thread, run_worker, w);
}

int workers_start(struct ring *ring)
{
	uint32_t workers = ring->options.workers;
	int r = 0;

	ring->workers = calloc(workers, sizeof(*ring->workers));
	if (!ring->workers)
		return -ENOMEM;
	for (; ring->num_workers < workers && !r; ring->num_workers += !r)
		r = start_worker(ring, ring->num_workers);
	return r;
}

void workers_join(struct ring *ring)
{
	for (uint32_t i = 0; i < ring->num_workers; i++)
		pthread_join(ring->workers[i].thread, NULL);
	ring->num_workers = 0;
}

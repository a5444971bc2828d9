/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/run/loop/throughput.h"
#include "loader/run/ring/failure.h"
#include "loader/run/ring/fetcher.h"
#include "loader/run/ring/makers.h"
#include "loader/run/ring/named.h"
#include "loader/run/ring/residence.h"
#include "loader/run/ring/turns.h"
#include "loader/run/ring/workers.h"

/* Time after which a waiting user's thread looks for stalled batches. */
enum { LOOK_MS = 20 };

/* --- calls of the user --- */

/* Returns the next turn for the user, or NULL if it is not done yet. */
static struct turn *find_ready_turn(struct ring *ring)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->state == TURN_DONE &&
		    t->sequence == ring->delivered_sequence)
			return t;
	}
	return NULL;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Waits until a turn is done, or until `end`, unless that is NULL. If there are
   makers, looks at times whether the turn is stalled. Returns false after
   `end`. */
static bool wait_until_ready(struct ring *ring, const struct timespec *end)
{
	struct timespec look = clock_in_ms(LOOK_MS);
	bool looks =
		ring->options.has_makers && (!end || is_before(&look, end));

	if (looks)
		end = &look;
	if (!end) {
		turns_wait(ring, &ring->ready, NULL);
		return true;
	}
	if (!turns_wait(ring, &ring->ready, end))
		return true;
	if (looks)
		makers_look(ring);
	return looks;
}

static struct turn *wait_for_turn(struct ring *ring)
{
	uint64_t begin = ring->throughput.asked_ns, now;
	struct turn *t = find_ready_turn(ring);

	if ((t && !ring->throughput.is_waiting) || ring->worker_error)
		return t;
	turns_push_range(ring, "beton next");
	while (!t && !ring->worker_error) {
		wait_until_ready(ring, NULL);
		t = find_ready_turn(ring);
	}
	turns_pop_range(ring);
	now = stage_now_ns();
	throughput_waited(&ring->throughput, begin, now, t ? &t->times : NULL);
	if (t)
		residence_note_wait(ring, t, now - begin);
	return t;
}

static void end_epoch(struct ring *ring)
{
	ring->epoch_over = true;
	cursor_finish(&ring->delivered);
}

/* Ends an epoch without further batches, and moves to the next epoch. Returns
   false if a batch follows. */
static bool advance_epoch(struct ring *ring)
{
	if (!cursor_at_end(&ring->delivered))
		return false;
	if (!ring->epoch_over ||
	    ring->delivered.epoch + 1 >= ring->epochs_end) {
		end_epoch(ring);
		return true;
	}
	cursor_seek(&ring->delivered, ring->delivered.epoch + 1, 0);
	ring->epoch_over = false;
	if (!cursor_at_end(&ring->delivered))
		return false;
	end_epoch(ring);
	return true;
}

static uint32_t count_ready_turns(const struct ring *ring)
{
	const struct turn *t;
	uint32_t n = 0;

	DL_FOREACH(ring->turns, t)
	{
		n += t->state == TURN_DONE && !t->is_named;
	}
	return n;
}

/* Adds a turn to the balance of CPU and GPU. `ready` is the number of ready
   batches at the user's call. */
static void weigh_turn(struct ring *ring, const struct turn *t, uint32_t ready,
		       uint64_t now)
{
	uint64_t last = ring->last_delivered_ns;
	struct device_batch *p = t->step->parcel;

	ring->last_delivered_ns = now;
	if (!p || !ring->options.plan.whole || t->replays || t->step->is_sent)
		return;
	offload_add(&ring->balance,
		    &(struct offload_batch){
			    .side = t->step->side,
			    .rows = t->step->batch.num_samples,
			    .busy_ns = t->times.busy_ns,
			    .bytes = device_batch_size(p),
			    .period_ns = last ? now - last : 0,
			    .starved = !ready,
			    .full = ready >= ring->options.prefetch,
			    .blocked = device_batch_has_waited(p),
		    });
}

static uint64_t count_output_bytes(const struct beton_batch *batch)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < batch->num_outputs; i++)
		bytes += batch->outputs[i].size;
	return bytes;
}

static void note_delivery(struct ring *ring, const struct beton_batch *batch,
			  uint64_t now)
{
	bool made = ring->options.plan.until != BETON_STAGE_READ;

	throughput_give(&ring->throughput, now, batch,
			made ? count_output_bytes(batch) : 0);
}

static void log_unlogged(const struct ring *ring, uint64_t n)
{
	if (n)
		log_warning(
			ring->options.log,
			"%s: %llu sample%s after the first one could not be read",
			ring->options.feed->path, (unsigned long long)n,
			n == 1 ? "" : "s");
}

/* Skipping is for samples. If none can be read any longer, fails the turn. */
static void judge_losses(struct ring *ring, struct turn *t)
{
	struct step *s = t->step;
	size_t used;

	if (!losses_take(&ring->losses, s->batch.num_samples, s->lost,
			 cursor_steps(&ring->delivered, 0), &ring->unlogged))
		return;
	ring->unlogged = losses_end(&ring->losses);
	used = strlen(s->message);
	snprintf(
		s->message + used, sizeof(s->message) - used,
		"; %llu samples in a row could not be read: on_error skips no more of them",
		(unsigned long long)ring->losses.samples);
	t->error = step_errno(s);
}

/* Delivers a turn that is done to the user. If it failed, returns its error and
   recycles it. Counts failed samples here, because workers can make a batch
   more than once. */
static int deliver_turn(struct ring *ring, struct turn *t,
			const struct beton_batch **out, char *message,
			size_t size)
{
	int r = t->error;

	atomic_fetch_add(&ring->failed_samples, atomic_load(&t->step->failed));
	if (r) {
		snprintf(message, size, "%s", t->step->message);
		turn_recycle(ring, t);
		return r;
	}
	turn_land(ring, t);
	t->state = TURN_HELD;
	residence_note_delivery(ring);
	pthread_cond_signal(&ring->room);
	*out = &t->step->batch;
	return 0;
}

/* Counts and delivers the next turn. If a maker was stalled, there may be
   another turn of the same place, which is stale then. */
static int deliver_in_order(struct ring *ring, struct turn *t, uint32_t ready,
			    const struct beton_batch **out, char *message,
			    size_t size)
{
	uint64_t now = stage_now_ns();
	int r;

	ring->delivered_sequence++;
	ring->delivered.step++;
	turns_wake_blocked(ring);
	if (t->error)
		losses_end(&ring->losses);
	else if (!t->replays)
		judge_losses(ring, t);
	if (t->error) {
		throughput_break(&ring->throughput);
	} else {
		weigh_turn(ring, t, ready, now);
		note_delivery(ring, &t->step->batch, now);
	}
	r = deliver_turn(ring, t, out, message, size);
	if (ring->options.has_makers)
		turns_drop_stale(ring);
	return r;
}

/* Returns the error that has ended a thread. */
static int explain_end(const struct ring *ring, char *message, size_t size)
{
	char why[FAILURE_WHY_SIZE];

	failure_explain(ring, ring->worker_error, false, why, sizeof(why));
	snprintf(message, size, "the loader cannot continue: %s", why);
	return ring->worker_error;
}

/* Waits for the next turn and delivers it to the user. Called with the lock. */
static int deliver_next(struct ring *ring, const struct beton_batch **out,
			char *message, size_t size)
{
	struct turn *t;
	uint32_t ready;

	if (!cursor_consumed(&ring->delivered))
		throughput_begin(&ring->throughput, ring->throughput.asked_ns);
	ready = find_ready_turn(ring) && !ring->throughput.is_waiting
			? count_ready_turns(ring)
			: 0;
	throughput_look(&ring->throughput, ready);
	t = wait_for_turn(ring);
	if (t)
		return deliver_in_order(ring, t, ready, out, message, size);
	throughput_break(&ring->throughput);
	return explain_end(ring, message, size);
}

int ring_next(struct ring *ring, const struct beton_batch **out, char *message,
	      size_t message_size)
{
	uint64_t now = stage_now_ns(), epoch, unlogged;
	char line[PACE_LINE_SIZE];
	int r;

	throughput_ask(&ring->throughput, now);
	turns_lock(ring);
	if (!advance_epoch(ring)) {
		ring->unlogged = 0;
		residence_begin_call(ring);
		r = deliver_next(ring, out, message, message_size);
		residence_end_call(ring);
		turns_unlock(ring);
		log_unlogged(ring, ring->unlogged);
		return r;
	}
	ring->last_delivered_ns = 0;
	epoch = ring->delivered.epoch;
	unlogged = losses_end(&ring->losses);
	turns_unlock(ring);
	log_unlogged(ring, unlogged);
	snprintf(message, message_size, "the epoch is over");
	throughput_end(&ring->throughput, now, epoch, line);
	if (*line)
		log_info(ring->options.log, "%s", line);
	return -ENODATA;
}

void ring_waited_for_upload(struct ring *ring)
{
	throughput_waited_for_upload(&ring->throughput, stage_now_ns());
}

/* Whether ring_next() would return -ENODATA. Called with the lock. */
static bool is_at_end(const struct ring *ring)
{
	struct cursor next = ring->delivered;

	if (!cursor_at_end(&next))
		return false;
	if (!ring->epoch_over || next.epoch + 1 >= ring->epochs_end)
		return true;
	cursor_seek(&next, next.epoch + 1, 0);
	return cursor_at_end(&next);
}

/* Whether ring_next() would block. Called with the lock. */
static bool must_wait(struct ring *ring)
{
	return !ring->worker_error && !is_at_end(ring) &&
	       !find_ready_turn(ring);
}

/* Waits while ring_next() would block, for so many milliseconds at most. */
static void wait_for_next(struct ring *ring, uint32_t milliseconds)
{
	struct timespec end;
	bool late = !milliseconds;

	if (ring->options.has_makers)
		makers_look(ring);
	if (!late)
		throughput_wait(&ring->throughput, stage_now_ns());
	end = clock_in_ms(milliseconds);
	while (!late && must_wait(ring))
		late = !wait_until_ready(ring, &end);
}

int ring_wait(struct ring *ring, uint32_t milliseconds)
{
	turns_scope(ring);
	residence_begin_call(ring);
	if (must_wait(ring))
		wait_for_next(ring, milliseconds);
	residence_end_call(ring);
	return must_wait(ring) ? -EAGAIN : 0;
}

/* --- batches by name --- */

static bool is_done(const struct turn *t)
{
	return t && t->state == TURN_DONE;
}

int ring_ask(struct ring *ring, uint64_t epoch, uint64_t number,
	     uint32_t milliseconds)
{
	struct timespec end = clock_in_ms(milliseconds);
	struct turn *t;
	int late = 0;

	turns_scope(ring);
	residence_begin_call(ring);
	t = named_find(ring, epoch, number);
	if (!t)
		named_add(ring, epoch, number);
	while (!is_done(t) && !ring->worker_error && milliseconds && !late) {
		if (!t)
			named_hurry(ring, epoch, number);
		late = turns_wait(ring, &ring->ready, &end);
		t = named_find(ring, epoch, number);
	}
	residence_end_call(ring);
	return is_done(t) || ring->worker_error ? 0 : -EAGAIN;
}

int ring_make(struct ring *ring, uint64_t epoch, uint64_t number,
	      const struct beton_batch **out, char *message, size_t size)
{
	struct turn *t;

	turns_scope(ring);
	residence_begin_call(ring);
	while (!is_done(t = named_find(ring, epoch, number)) &&
	       !ring->worker_error) {
		if (!t)
			named_hurry(ring, epoch, number);
		turns_wait(ring, &ring->ready, NULL);
	}
	residence_end_call(ring);
	if (is_done(t))
		return deliver_turn(ring, t, out, message, size);
	return explain_end(ring, message, size);
}

/* --- batches that the user holds --- */

/* Returns the turn of a batch that the user holds, or NULL. Called with the
   lock. */
static struct turn *find_held_turn(struct ring *ring,
				   const struct beton_batch *batch)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (&t->step->batch == batch && t->state == TURN_HELD)
			return t;
	}
	return NULL;
}

void ring_release(struct ring *ring, const struct beton_batch *batch)
{
	struct turn *t;

	turns_scope(ring);
	t = find_held_turn(ring, batch);
	if (!t)
		return;
	residence_note_release(ring);
	turn_recycle(ring, t);
}

int ring_parcel(struct ring *ring, const struct beton_batch *batch,
		struct device_batch **out)
{
	struct turn *t;

	turns_scope(ring);
	t = find_held_turn(ring, batch);
	if (!t)
		return -EINVAL;
	*out = t->step->batch.num_samples ? t->step->parcel : NULL;
	return 0;
}

void ring_seek(struct ring *ring, uint64_t epoch, uint64_t batches)
{
	uint64_t before;

	turns_scope(ring);
	before = ring->delivered.epoch;
	cursor_seek(&ring->delivered, epoch, batches);
	if (ring->epochs_end != UINT64_MAX)
		ring->epochs_end += ring->delivered.epoch - before;
	ring->begun = ring->delivered;
	ring->delivered_sequence = ring->begun_sequence;
	ring->epoch_over = false;
	ring->last_delivered_ns = 0;
	throughput_break(&ring->throughput);
	turns_drop_stale(ring);
	pthread_cond_signal(&ring->room);
}

const struct cursor *ring_cursor(const struct ring *ring)
{
	return &ring->delivered;
}

uint64_t ring_epoch(struct ring *ring)
{
	const struct cursor *c = &ring->delivered;

	turns_scope(ring);
	if (cursor_at_end(c) && c->epoch + 1 < ring->epochs_end)
		return c->epoch + 1;
	return c->epoch;
}

enum offload_side ring_side(struct ring *ring)
{
	turns_scope(ring);
	return ring->balance.side;
}

size_t ring_stats(const struct ring *ring, struct beton_stage_stats *out,
		  size_t max)
{
	return stage_stats(ring->lanes, LANE_WORKERS + ring->options.workers,
			   ring->throughput.delay_ns, out, max);
}

void ring_throughput(const struct ring *ring,
		     struct beton_throughput_stats *out)
{
	const atomic_uint_fast64_t *sums = ring->throughput.sums;

	*out = (struct beton_throughput_stats){
		.batches = counters_get(&sums[PACE_BATCHES]),
		.samples = counters_get(&sums[PACE_SAMPLES]),
		.waits = counters_get(&sums[PACE_WAITS]),
		.wait_ns = counters_get(&sums[PACE_WAIT_NS]),
		.trainer_ns = counters_get(&sums[PACE_TRAINER_NS]),
		.queue_capacity = ring->throughput.places,
		.queue_ready = counters_get(&sums[PACE_READY]),
		.queue_empty = counters_get(&sums[PACE_EMPTY]),
		.queue_full = counters_get(&sums[PACE_FULL]),
	};
}

void ring_totals(const struct ring *ring, struct telemetry_totals *out)
{
	const struct throughput *p = &ring->throughput;

	*out = (struct telemetry_totals){
		.samples = counters_get(&p->sums[PACE_SAMPLES]),
		.batches = counters_get(&p->sums[PACE_BATCHES]),
		.wait_ns = counters_get(&p->sums[PACE_WAIT_NS]),
		.makers_ns = counters_get(&p->delay_ns[STAGE_MAKERS]),
		.network_ns = counters_get(&p->delay_ns[STAGE_NETWORK]),
	};
}

void ring_makers(struct ring *ring, struct beton_makers_stats *out)
{
	struct makers *m = &ring->makers;
	uint64_t n, sum = 0;

	turns_scope(ring);
	n = min_u64(m->num_times, MAKERS_TIMES);
	*out = m->stats;
	out->makers = m->num_ready;
	for (uint64_t i = 0; i < n; i++)
		sum += m->times_ns[i];
	out->latency_ns = n ? sum / n : 0;
}

uint64_t ring_failed_samples(const struct ring *ring)
{
	return atomic_load(&ring->failed_samples);
}

/* --- opening and closing --- */

/* Without a trace, the tracks are NULL and the threads record no spans. */
static void add_tracks(struct ring *ring)
{
	struct trace *trace = ring->options.trace;

	ring->lanes[LANE_TRAINER].track = trace_add(trace, "trainer");
	ring->lanes[LANE_FETCHER].track = trace_add(trace, "beton reader");
	for (uint32_t i = 0; i < ring->options.workers; i++)
		ring->lanes[LANE_WORKERS + i].track =
			trace_add(trace, "beton worker %u", i);
}

static int start_threads(struct ring *ring)
{
	int r;

	ring->lanes = stage_lanes(LANE_WORKERS + ring->options.workers);
	if (!ring->lanes)
		return -ENOMEM;
	add_tracks(ring);
	throughput_init(&ring->throughput, &ring->lanes[LANE_TRAINER],
			ring->options.complete);
	r = fetcher_start(ring);
	return r ? r : workers_start(ring);
}

int ring_open(const struct ring_options *options, struct ring **out)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->options = *options;
	ring->epochs_end = options->epochs_end;
	ring->delivered = ring->begun = options->start;
	ring->opened_ns = stage_now_ns();
	offload_init(&ring->balance, options->balance, options->workers);
	ring->losses.is_remote = feed_is_remote(options->feed);
	pthread_mutex_init(&ring->lock, NULL);
	ring->inputs = calloc(options->prefetch, sizeof(*ring->inputs));
	residence_reset(ring);
	ring->idle.called_ns = ring->opened_ns;
	clock_cond_init(&ring->room);
	clock_cond_init(&ring->work);
	makers_init(&ring->makers);
	clock_cond_init(&ring->ready);
	r = ring->inputs ? start_threads(ring) : -ENOMEM;
	if (r)
		ring_close(ring);
	else
		*out = ring;
	return r;
}

void ring_halt(struct ring *ring)
{
	turns_lock(ring);
	ring->stopping = true;
	ring->worker_error = -ECANCELED;
	pthread_cond_broadcast(&ring->room);
	pthread_cond_broadcast(&ring->work);
	/* Wakes ring_make() of a maker's link. */
	pthread_cond_broadcast(&ring->ready);
	makers_stop(ring);
	turns_unlock(ring);
	callback_stop(ring->options.callback);
	feed_cancel(ring->options.feed);
	workers_join(ring);
}

void ring_stop(struct ring *ring)
{
	struct turn *t, *next;

	ring_halt(ring);
	fetcher_join(ring);
	turns_scope(ring);
	DL_FOREACH_SAFE(ring->turns, t, next)
	{
		if (t->state != TURN_HELD)
			turn_recycle(ring, t);
	}
	LL_FOREACH_SAFE(ring->free_turns, t, next)
	{
		if (t->step->parcel)
			continue;
		LL_DELETE(ring->free_turns, t);
		ring->num_free--;
		turn_close(ring, t);
	}
	turns_free_inputs(ring);
}

void ring_close(struct ring *ring)
{
	struct turn *t, *next;

	if (!ring)
		return;
	ring_halt(ring);
	fetcher_join(ring);
	DL_FOREACH_SAFE(ring->turns, t, next)
	{
		DL_DELETE(ring->turns, t);
		if (t->is_cached)
			LL_PREPEND(ring->cached_turns, t);
		else
			turn_close(ring, t);
	}
	LL_FOREACH_SAFE(ring->free_turns, t, next)
	{
		turn_close(ring, t);
	}
	/* Close these turns last, because other turns share their tensors. */
	LL_FOREACH_SAFE(ring->cached_turns, t, next)
	{
		turn_close(ring, t);
	}
	turns_free_inputs(ring);
	free(ring->inputs);
	pthread_cond_destroy(&ring->ready);
	pthread_cond_destroy(&ring->work);
	pthread_cond_destroy(&ring->room);
	makers_fini(&ring->makers);
	pthread_mutex_destroy(&ring->lock);
	free(ring->workers);
	free(ring->lanes);
	free(ring);
}

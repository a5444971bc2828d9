/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/fetcher.h"

#include <utlist.h>

#include "fs/base/metrics/rank_figures.h"
#include "fs/base/util/thread.h"
#include "loader/image/jpeg/entry_store.h"
#include "loader/run/ring/failure.h"
#include "loader/run/ring/makers.h"
#include "loader/run/ring/named.h"
#include "loader/run/ring/residence.h"

/* Returns the number of unfinished turns that do not share the tensors of a
   cached step. */
static uint32_t count_unfinished(const struct ring *ring)
{
	const struct turn *t;
	uint32_t n = 0;

	DL_FOREACH(ring->turns, t)
	{
		n += t->state < TURN_DONE && !t->replays &&
		     !turn_is_stale(ring, t);
	}
	return n;
}

/* Returns the number of turns that are stale, and that a maker may never
   answer. */
static uint32_t count_abandoned(const struct ring *ring)
{
	const struct turn *t;
	uint32_t n = 0;

	DL_FOREACH(ring->turns, t)
	{
		n += t->state == TURN_REMOTE && turn_is_stale(ring, t);
	}
	return n;
}

static bool has_room(const struct ring *ring)
{
	uint32_t left = ring->options.has_makers ? count_abandoned(ring) : 0;

	return ring->in_flight - left < ring->options.prefetch;
}

static bool may_begin_turn(const struct ring *ring)
{
	const struct replay *replay = ring->options.replay;

	if (!has_room(ring) || ring->worker_error || ring->idle.is_idle ||
	    ring->options.on_demand || ring->begun.epoch >= ring->epochs_end)
		return false;
	if (replay && !replay_may_begin(replay, ring->begun.epoch,
					count_unfinished(ring)))
		return false;
	/* Without this check, the thread would never wait in an epoch without
	   steps. */
	return spec_batches(&ring->options.feed->spec) &&
	       cursor_steps(&ring->begun, 0);
}

/* Returns NULL if memory is short. */
static struct turn *add_turn(struct ring *ring)
{
	struct turn *t;
	int r = turn_take_free(ring, &t);

	if (r) {
		turns_give_up(ring, r);
		return NULL;
	}
	turn_begin(ring, t);
	return t;
}

/* Takes a turn for the next batch of this rank. Returns NULL at the end of an
   epoch, or if memory is short. */
static struct turn *begin_turn(struct ring *ring)
{
	struct turn *t;

	if (cursor_at_end(&ring->begun)) {
		cursor_seek(&ring->begun, ring->begun.epoch + 1, 0);
		return NULL;
	}
	t = add_turn(ring);
	if (!t)
		return NULL;
	t->name =
		(struct name){ ring->begun.epoch, cursor_number(&ring->begun) };
	t->is_padding =
		t->name.number >= spec_batches(&ring->options.feed->spec);
	ring->begun.step++;
	ring->in_flight++;
	t->sequence = ring->begun_sequence++;
	t->replays = ring->options.replay
			     ? replay_next(ring->options.replay, t->name.epoch)
			     : NULL;
	return t;
}

/* The same, for a batch that the user has asked for by name. */
static struct turn *begin_named_turn(struct ring *ring)
{
	struct turn *t = add_turn(ring);

	if (!t)
		return NULL;
	t->sequence = TURN_NAMED;
	t->is_named = true;
	t->name = named_begin(ring);
	return t;
}

/* Begins all turns that there is room for, and queues them for any side. */
static void queue_turns(struct ring *ring)
{
	struct turn *t;

	while (may_begin_turn(ring)) {
		t = begin_turn(ring);
		if (!t)
			continue;
		t->state = TURN_QUEUED;
		turns_offer(ring);
	}
}

/* Returns the turn to fetch next, or NULL if there is none. */
static struct turn *next_turn(struct ring *ring)
{
	struct turn *t = NULL;

	if (named_may_begin(ring))
		return begin_named_turn(ring);
	if (ring->options.has_makers) {
		queue_turns(ring);
		return makers_take_local(ring);
	}
	while (!t && may_begin_turn(ring))
		t = begin_turn(ring);
	return t;
}

/* --- reports of this rank's figures --- */

/* Least time between two reports, in nanoseconds. */
#define REPORT_NS UINT64_C(1000000000)

static uint64_t sum_counter(const struct ring *ring, enum stage stage,
			    size_t counter)
{
	return stage_sum(ring->lanes, LANE_WORKERS + ring->options.workers,
			 stage, counter);
}

static uint64_t count_entry_hits(const struct ring *ring)
{
	struct entry_store_stats stats;

	entry_store_stats(ring->options.entries, &stats);
	return stats.hits;
}

static void read_figures(struct ring *ring, struct rank_figures *out)
{
	const size_t busy = offsetof(struct counters, busy_ns);

	throughput_figures(&ring->throughput, out);
	out->n[FIGURE_OPEN_NS] = stage_now_ns() - ring->opened_ns;
	out->n[FIGURE_FAILED_SAMPLES] = atomic_load(&ring->failed_samples);
	out->n[FIGURE_READ_BYTES] =
		sum_counter(ring, STAGE_READ, offsetof(struct counters, bytes));
	out->n[FIGURE_READ_NS] = sum_counter(ring, STAGE_READ, busy);
	out->n[FIGURE_DECODE_NS] = sum_counter(ring, STAGE_DECODE, busy);
	out->n[FIGURE_ENTRY_HITS] = count_entry_hits(ring);
	out->n[FIGURE_TRANSFORM_NS] = sum_counter(ring, STAGE_TRANSFORM, busy);
	out->n[FIGURE_UPLOAD_NS] = sum_counter(ring, STAGE_UPLOAD, busy);
	out->n[FIGURE_MAKERS_NS] = sum_counter(ring, STAGE_MAKERS, busy);
	out->n[FIGURE_NETWORK_NS] = sum_counter(ring, STAGE_NETWORK, busy);
}

/* Sends a report to the daemon, which publishes it (beton-stats(7)), if the
   trainer got a batch since the last one. Does nothing if the feed has no
   daemon. Called without the lock. */
static void report_send(struct ring *ring)
{
	struct feed *feed = ring->options.feed;
	struct rank_figures now = { .epoch = 0 };

	if (!feed->ops->report)
		return;
	read_figures(ring, &now);
	if (now.n[FIGURE_BATCHES] != ring->reported.n[FIGURE_BATCHES])
		feed->ops->report(feed, &now);
	ring->reported = now;
}

/* The same, if the last report is at least a second old. */
static void report_send_if_due(struct ring *ring)
{
	if (stage_now_ns() - ring->opened_ns >=
	    ring->reported.n[FIGURE_OPEN_NS] + REPORT_NS)
		report_send(ring);
}

/* --- fetching --- */

/* Whether the fetching thread reads in the order of the rank, so that the feed
   may read ahead: not, if makers take batches from between. */
static bool is_in_order(const struct ring *ring, const struct turn *t)
{
	return !t->is_named && !ring->makers.num_ready;
}

/* Prepares the tensors. On a GPU this waits until their memory is free. */
static int prepare_step(struct ring *ring, const struct turn *t)
{
	struct step *s = t->step;
	struct stage_lane *lane = &ring->lanes[LANE_FETCHER];
	uint64_t before = stage_now_ns();
	int r = step_prepare(s, &ring->options.plan, t->name.number,
			     t->is_padding);

	if (s->parcel)
		counters_add_own(&lane->stages[STAGE_UPLOAD].room_wait_ns,
				 stage_now_ns() - before);
	return r;
}

/* Fetches the batch file and prepares the tensors. Called without the lock. */
static int fetch_batch(struct ring *ring, const struct turn *t)
{
	struct step *s = t->step;
	uint64_t batches = spec_batches(&ring->options.feed->spec);
	struct stage_lane *lane = &ring->lanes[LANE_FETCHER];
	uint64_t before = stage_now_ns(), after;
	int r = feed_fetch(ring->options.feed, t->name.epoch,
			   t->name.number % batches, &s->input, &s->view);

	if (!r && ring->options.plan.until == BETON_STAGE_READ)
		step_sum(s);
	after = stage_now_ns();
	counters_items_own(&lane->stages[STAGE_READ], 1, r ? 0 : s->input.size,
			   after - before);
	trace_span(lane->track, TRACE_READ, before, after, t->name.epoch,
		   t->name.number);
	if (!r)
		r = prepare_step(ring, t);
	if (!r && ring->options.plan.until == BETON_STAGE_READ)
		feed_release(ring->options.feed, &s->input);
	return r;
}

/* Fills a turn from a cached step, without a batch file and without running
   rows. Called with the lock, which it releases meanwhile. */
static void replay_turn(struct ring *ring, struct turn *t)
{
	struct counters *upload =
		&ring->lanes[LANE_FETCHER].stages[STAGE_UPLOAD];
	const struct device_batch *p = t->step->parcel;
	uint64_t before;
	int r;

	turns_unlock(ring);
	before = stage_now_ns();
	t->times.fetched_ns = t->times.made_ns = before;
	r = replay_fill(ring->options.replay, t->step, t->replays,
			t->name.epoch, t->name.number);
	if (r)
		failure_note(ring, t, t->name.epoch, t->name.number, r,
			     p != NULL);
	if (p && device_batch_size(p))
		counters_items_own(upload, 1, device_batch_size(p),
				   stage_now_ns() - before);
	turns_lock(ring);
	turn_finish(ring, t, r);
}

static void fetch_turn(struct ring *ring, struct turn *t)
{
	int r;

	t->step->is_sent = false;
	t->step->input.is_named = !is_in_order(ring, t);
	ring->makers.is_fetching = true;
	turn_take_input(ring, t);
	turns_unlock(ring);
	report_send_if_due(ring);
	turns_push_range(ring, "beton read");
	r = fetch_batch(ring, t);
	turns_pop_range(ring);
	if (r)
		failure_note(ring, t, t->name.epoch, t->name.number, r, false);
	t->times.fetched_ns = stage_now_ns();
	turns_lock(ring);
	ring->makers.is_fetching = false;
	if (r || ring->options.plan.until == BETON_STAGE_READ ||
	    turn_is_stale(ring, t)) {
		turn_finish(ring, t, r);
		return;
	}
	t->state = TURN_RUNNING;
	t->is_split = ring->options.head_rows && step_has_memory(t->step);
	turn_begin_rows(ring, t);
}

/* Waits until there may be a turn to fetch. */
static void wait_for_room(struct ring *ring)
{
	struct stage_lane *lane = &ring->lanes[LANE_FETCHER];
	uint64_t until = residence_trims_at(ring);

	if (until && until <= stage_now_ns())
		residence_trim(ring);
	else
		turns_wait_counted(ring, &ring->room, until,
				   &lane->stages[STAGE_READ].room_wait_ns);
}

static void *run_fetcher(void *arg)
{
	struct ring *ring = arg;
	struct turn *t;

	trace_here(ring->lanes[LANE_FETCHER].track);
	turns_lock(ring);
	while (!ring->stopping) {
		t = next_turn(ring);
		if (!t)
			wait_for_room(ring);
		else if (t->replays)
			replay_turn(ring, t);
		else
			fetch_turn(ring, t);
	}
	turns_unlock(ring);
	return NULL;
}

int fetcher_start(struct ring *ring)
{
	int r = thread_start(&ring->fetcher, run_fetcher, ring);

	ring->has_fetcher = !r;
	return r;
}

void fetcher_join(struct ring *ring)
{
	if (ring->has_fetcher) {
		pthread_join(ring->fetcher, NULL);
		report_send(ring);
	}
	ring->has_fetcher = false;
}

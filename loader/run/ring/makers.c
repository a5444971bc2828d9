/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/makers.h"

#include <sys/socket.h>
#include <utlist.h>

enum {
	/* Batches that the own workers have at a time: one that they make, and
	   the following one. */
	LOCAL_MAX = 2,
	/* A batch is stalled after twice the longest of the last times, but
	   not before the least delay; and after the first delay as long as no
	   time is known. */
	STALL_FACTOR = 2,
	STALL_LEAST_MS = 50,
	STALL_FIRST_MS = 2000,
};

static const uint64_t MS = 1000000;

void makers_init(struct makers *m)
{
	pthread_cond_init(&m->queued, NULL);
	pthread_cond_init(&m->removed, NULL);
}

void makers_fini(struct makers *m)
{
	pthread_cond_destroy(&m->queued);
	pthread_cond_destroy(&m->removed);
}

/* --- which turn, and whose --- */

static bool is_local(const struct turn *t)
{
	return t->state == TURN_FETCHING ||
	       (t->state == TURN_RUNNING && !t->step->is_sent);
}

/* Whether a maker can be expected to make batches in time. */
static bool has_timely_maker(const struct ring *ring)
{
	const struct link *link;

	DL_FOREACH(ring->makers.links, link)
	{
		if (link->is_ready && !link->is_late)
			return true;
	}
	return false;
}

bool makers_wants_local(const struct ring *ring)
{
	const struct turn *t;
	unsigned n = 0;

	if (ring->options.spares_workers && has_timely_maker(ring))
		return false;
	DL_FOREACH(ring->turns, t)
	{
		n += is_local(t) && !turn_is_stale(ring, t);
	}
	return n < LOCAL_MAX;
}

/* Begins another turn for the batch of a stalled one. If memory is short,
   returns NULL, and makers_look() marks the turn again. */
static struct turn *repeat(struct ring *ring, struct turn *stalled)
{
	struct turn *t;

	stalled->is_stalled = false;
	if (turn_take_free(ring, &t))
		return NULL;
	stalled->is_repeated = true;
	turn_begin(ring, t);
	/* The workers run the rows of the first turn first. */
	DL_DELETE(ring->turns, t);
	DL_PREPEND(ring->turns, t);
	t->sequence = stalled->sequence;
	t->name = stalled->name;
	t->is_padding = stalled->is_padding;
	t->is_repeated = true;
	ring->in_flight++;
	ring->makers.stats.repeated++;
	return t;
}

static bool is_stalled(const struct ring *ring, const struct turn *t)
{
	return t->is_stalled && t->state == TURN_REMOTE &&
	       !turn_is_stale(ring, t);
}

static bool is_queued(const struct ring *ring, const struct turn *t)
{
	return t->state == TURN_QUEUED && !turn_is_stale(ring, t);
}

/* Returns the oldest turn that the maker of a link may make. A turn that was
   repeated before is for the own workers. */
static struct turn *find_for_link(struct ring *ring, const struct link *link)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (is_stalled(ring, t) && !t->is_repeated && t->link != link)
			return repeat(ring, t);
		if (is_queued(ring, t) && !t->is_refused)
			return t;
	}
	return NULL;
}

/* Returns the oldest turn that the own workers may make. If they should rest,
   that is one that no maker may make. */
static struct turn *find_local(struct ring *ring)
{
	bool wants = makers_wants_local(ring);
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (is_stalled(ring, t))
			return repeat(ring, t);
		if (is_queued(ring, t) && (wants || t->is_refused))
			return t;
	}
	return NULL;
}

struct turn *makers_take_local(struct ring *ring)
{
	struct turn *t = find_local(ring);

	if (!t)
		return NULL;
	t->state = TURN_FETCHING;
	ring->makers.stats.here++;
	/* Makers, which have left this turn, take the following ones. */
	pthread_cond_broadcast(&ring->makers.queued);
	return t;
}

bool makers_take(struct ring *ring, struct link *link)
{
	struct turn *t;

	/* The fetching thread takes it. */
	if (makers_wants_local(ring) && !ring->makers.is_fetching)
		return false;
	t = find_for_link(ring, link);
	if (!t)
		return false;
	t->state = TURN_REMOTE;
	t->link = link;
	t->asked_ns = stage_now_ns();
	link->turns[link->num_turns++] = t;
	return true;
}

static uint64_t stalls_after(const struct makers *m)
{
	uint64_t longest = 0, n = min_u64(m->num_times, MAKERS_TIMES);

	for (uint64_t i = 0; i < n; i++)
		longest = max_u64(longest, m->times_ns[i]);
	return n ? max_u64(STALL_FACTOR * longest, STALL_LEAST_MS * MS)
		 : STALL_FIRST_MS * MS;
}

/* --- what became of it --- */

static struct turn *remove_first(struct link *link)
{
	struct turn *t = link->turns[0];

	link->num_turns--;
	for (unsigned i = 0; i < link->num_turns; i++)
		link->turns[i] = link->turns[i + 1];
	t->link = NULL;
	return t;
}

/* Whether another turn of the same place will be done. */
static bool has_duplicate(const struct ring *ring, const struct turn *t)
{
	const struct turn *other;

	DL_FOREACH(ring->turns, other)
	{
		if (other != t && other->sequence == t->sequence &&
		    other->state != TURN_HELD)
			return true;
	}
	return false;
}

static void requeue(struct ring *ring, struct turn *t)
{
	t->state = TURN_QUEUED;
	t->is_stalled = false;
	if (t->step->parcel)
		device_batch_end(t->step->parcel);
	if (turn_is_stale(ring, t) || has_duplicate(ring, t))
		turn_recycle(ring, t);
}

/* A maker that was suspended must not raise the limit to the time that it was,
   but makers that have become slow raise it step by step. */
static void add_time(struct makers *m, uint64_t ns)
{
	uint64_t limited = min_u64(ns, stalls_after(m));

	m->times_ns[m->num_times++ % MAKERS_TIMES] = limited;
}

void makers_received(struct ring *ring, struct link *link, uint64_t bytes)
{
	struct counters *stages = ring->lanes[LANE_LINKS].stages;
	struct makers *m = &ring->makers;
	struct turn *t = remove_first(link);
	uint64_t now = stage_now_ns();

	link->is_late = false;
	add_time(m, now - t->asked_ns);
	m->stats.batches++;
	m->stats.samples += t->step->batch.num_samples;
	m->stats.bytes += bytes;
	counters_items_own(&stages[STAGE_MAKERS], 1, 0,
			   link->answered_ns - link->waits_ns);
	counters_items_own(&stages[STAGE_NETWORK], 1, bytes,
			   now - link->answered_ns);
	t->times.answered_ns = link->answered_ns;
	t->times.fetched_ns = now;
	if (turn_is_stale(ring, t)) {
		turn_finish(ring, t, 0);
		return;
	}
	t->state = TURN_RUNNING;
	turn_begin_rows(ring, t);
}

void makers_refused(struct ring *ring, struct link *link)
{
	struct turn *t = remove_first(link);

	link->is_late = false;
	t->is_refused = true;
	ring->makers.stats.refused++;
	requeue(ring, t);
	turns_offer(ring);
}

/* --- links --- */

void makers_add(struct ring *ring, struct link *link)
{
	DL_APPEND(ring->makers.links, link);
	ring->makers.num_links++;
}

void makers_ready(struct ring *ring, struct link *link)
{
	link->is_ready = true;
	ring->makers.num_ready++;
	turns_offer(ring);
}

void makers_remove(struct ring *ring, struct link *link)
{
	while (link->num_turns)
		requeue(ring, remove_first(link));
	DL_DELETE(ring->makers.links, link);
	ring->makers.num_links--;
	ring->makers.num_ready -= link->is_ready;
	ring->makers.stats.lost += link->is_ready && !ring->stopping;
	pthread_cond_broadcast(&ring->makers.removed);
	turns_offer(ring);
}

void makers_stop(struct ring *ring)
{
	struct link *link;

	DL_FOREACH(ring->makers.links, link)
	{
		shutdown(link->fd, SHUT_RDWR);
	}
	pthread_cond_broadcast(&ring->makers.queued);
	while (ring->makers.num_links)
		turns_wait(ring, &ring->makers.removed, NULL);
}

/* --- stalled batches --- */

/* Returns the turn that a maker was asked for last, of those that can be the
   user's next batch; or NULL if another side makes one of them. */
static struct turn *find_awaited(const struct ring *ring)
{
	struct turn *t, *last = NULL;

	DL_FOREACH(ring->turns, t)
	{
		if (t->sequence != ring->delivered_sequence)
			continue;
		if (t->state != TURN_REMOTE)
			return NULL;
		if (!last || t->asked_ns > last->asked_ns)
			last = t;
	}
	return last;
}

/* Marks the links that are late. Returns whether there are new ones. */
static bool look_at_links(struct ring *ring, uint64_t asked_before)
{
	struct link *link;
	bool found = false;

	DL_FOREACH(ring->makers.links, link)
	{
		if (link->is_late || !link->num_turns ||
		    link->turns[0]->asked_ns > asked_before)
			continue;
		link->is_late = found = true;
	}
	return found;
}

void makers_look(struct ring *ring)
{
	uint64_t before = stage_now_ns() - stalls_after(&ring->makers);
	bool found = look_at_links(ring, before);
	struct turn *t = find_awaited(ring);

	if (t && !t->is_stalled && t->asked_ns <= before)
		t->is_stalled = found = true;
	if (found)
		turns_offer(ring);
}

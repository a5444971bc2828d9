/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/residence.h"

#include <utlist.h>

#include "fs/base/util/bytes.h"

enum {
	/* Turns that had no use at so many gifts of bodies are freed. */
	GIFTS = 4,
	/* A user who has just taken a batch often releases the previous one, so
	   wait for that rather than to allocate memory: this part of the time
	   from batch to batch, within limits. */
	RELEASE_PART = 8,
	RELEASE_LEAST_MS = 20,
	RELEASE_MOST_MS = 100,
	/* If in the time of so many batches, and again in that of the following
	   ones, the loss was more than this part of the time, all prefetched
	   batches may be complete. A single loss has other causes: a user who
	   keeps the first batch, for example. */
	GIVEN = 32,
	LOSS = 50,
	/* The rest begins after this time, and so many times the longest of the
	   last periods from batch to batch. */
	REST_MS = 1000,
	PERIODS = 2,
	/* A period is forgotten by an eighth with each batch. */
	FORGET = 8,
};

static const uint64_t MS = 1000000;

/* Whether the turn needs a body for its first `rows` rows. */
static bool is_over_head(const struct ring *ring, const struct turn *t,
			 uint32_t rows)
{
	return t->memory != TURN_WHOLE && !t->is_lean &&
	       rows > ring->options.head_rows;
}

/* Whether a turn is among the next ones to deliver, or has been asked for. */
static bool is_near(const struct ring *ring, const struct turn *t)
{
	return t->is_named ||
	       t->sequence < ring->given_sequence + ring->residence.complete;
}

/* Whether to wait for a release rather than to take the memory of a free turn or
   to allocate some. */
static bool is_soon_released(const struct ring *ring)
{
	const struct residence *res = &ring->residence;

	if (res->has_released || stage_now_ns() >= res->wait_until_ns)
		return false;
	return res->releases || !turns_find_free(ring, TURN_WHOLE);
}

static bool has_rows(const struct turn *t)
{
	return t->state == TURN_RUNNING &&
	       t->next_row < t->step->batch.num_samples;
}

static bool may_run(const struct ring *ring, const struct turn *t)
{
	if (!is_over_head(ring, t, t->next_row + 1))
		return true;
	return is_near(ring, t) && !t->gets_body && !is_soon_released(ring);
}

/* While a turn waits for a body, a later one does not begin, because it can have
   the head of the turn that loses the body. */
struct turn *residence_find_rows(const struct ring *ring)
{
	struct turn *t;
	bool waits = false;

	DL_FOREACH(ring->turns, t)
	{
		if (!has_rows(t))
			continue;
		if (may_run(ring, t) &&
		    (!waits || t->memory != TURN_BARE || t->is_named))
			return t;
		waits = true;
	}
	return NULL;
}

uint32_t residence_limit(const struct ring *ring, const struct turn *t,
			 uint32_t n)
{
	uint32_t head = ring->options.head_rows;

	if (t->memory == TURN_WHOLE || t->is_lean || t->next_row >= head)
		return n;
	return (uint32_t)min_u64(n, head - t->next_row);
}

/* Frees turns that were free at each of the last gifts. */
static void free_surplus(struct ring *ring)
{
	struct residence *res = &ring->residence;
	uint32_t n = 0;
	struct turn *t;

	LL_FOREACH(ring->free_turns, t)
	{
		n += t->memory == TURN_WHOLE;
	}
	res->surplus = res->gifts ? (uint32_t)min_u64(res->surplus, n) : n;
	res->gifts = (res->gifts + 1) % GIFTS;
	if (res->gifts)
		return;
	for (; res->surplus; res->surplus--)
		turns_drop_free(ring, turns_find_free(ring, TURN_WHOLE));
}

/* Gives a bare turn the memory of a free one, or lets it allocate a head. */
static void give_memory(struct ring *ring, struct turn *t)
{
	struct turn *from = NULL;

	if (is_near(ring, t))
		from = turns_find_free(ring, TURN_WHOLE);
	if (!from)
		from = turns_find_free(ring, TURN_HEAD);
	t->memory = from ? from->memory : TURN_HEAD;
	if (!from)
		return;
	step_swap_memory(t->step, from->step);
	from->memory = TURN_BARE;
}

/* Moves the body of a free turn. Workers begin one batch at a time, so one free
   head is enough. */
static void move_body(struct ring *ring, struct turn *t, struct turn *from)
{
	turns_remove_free(ring, from);
	t->gets_body = true;
	pthread_mutex_unlock(&ring->lock);
	step_move_body(t->step, from->step, ring->options.head_rows);
	pthread_mutex_lock(&ring->lock);
	t->gets_body = false;
	if (ring->rest.is_resting || turns_find_free(ring, TURN_HEAD)) {
		turn_close(ring, from);
		return;
	}
	from->memory = TURN_HEAD;
	turns_add_free(ring, from);
}

/* Gives a turn the memory of all its rows. */
static void give_body(struct ring *ring, struct turn *t)
{
	struct turn *from = turns_find_free(ring, TURN_WHOLE);

	if (from)
		move_body(ring, t, from);
	if (t->short_ns)
		t->held_up_ns = stage_now_ns() - t->short_ns;
	t->memory = TURN_WHOLE;
	free_surplus(ring);
	pthread_cond_broadcast(&ring->work);
}

void residence_give(struct ring *ring, struct turn *t)
{
	if (t->memory == TURN_BARE && !t->is_lean)
		give_memory(ring, t);
	if (is_over_head(ring, t, t->next_row))
		give_body(ring, t);
}

/* Returns the first turn that waits for a body, of those that get one next, or of
   the others; or NULL. */
static struct turn *find_short(const struct ring *ring)
{
	struct turn *t, *later = NULL;

	DL_FOREACH(ring->turns, t)
	{
		if (!has_rows(t) || t->gets_body ||
		    !is_over_head(ring, t, t->next_row + 1))
			continue;
		if (is_near(ring, t))
			return t;
		later = later ? later : t;
	}
	return later;
}

void residence_wait(struct ring *ring, atomic_uint_fast64_t *counter)
{
	struct turn *t = find_short(ring);
	uint64_t until = 0;

	if (t && is_near(ring, t))
		until = ring->residence.wait_until_ns;
	if (t && !t->short_ns)
		t->short_ns = stage_now_ns();
	ring->residence.is_short = ring->residence.is_short || t;
	turns_wait_counted(ring, &ring->work, until, counter);
}

static uint64_t release_ns(const struct ring *ring)
{
	uint64_t part = ring->rest.period_ns / RELEASE_PART;

	return min_u64(max_u64(part, RELEASE_LEAST_MS * MS),
		       RELEASE_MOST_MS * MS);
}

static void note_period(struct rest *rest, uint64_t now)
{
	if (rest->given_ns)
		rest->period_ns = max_u64(
			now - rest->given_ns,
			rest->period_ns - rest->period_ns / FORGET);
	rest->given_ns = now;
}

void residence_note_given(struct ring *ring)
{
	struct residence *res = &ring->residence;
	uint64_t now = stage_now_ns();
	bool loses;

	note_period(&ring->rest, now);
	res->wait_until_ns = now + release_ns(ring);
	res->releases = res->has_released;
	res->has_released = false;
	turns_note_user(ring);
	if (++res->given < GIVEN)
		return;
	loses = res->lost_ns > (now - res->begun_ns) / LOSS;
	if (loses && res->loses)
		res->complete = ring->options.prefetch;
	res->loses = loses;
	res->begun_ns = now;
	res->lost_ns = 0;
	res->given = 0;
}

void residence_note_release(struct ring *ring)
{
	struct residence *res = &ring->residence;

	res->has_released |= stage_now_ns() < res->wait_until_ns;
}

void residence_note_wait(struct ring *ring, const struct turn *t, uint64_t ns)
{
	ring->residence.lost_ns += min_u64(ns, t->held_up_ns);
}

void residence_reset(struct ring *ring)
{
	struct residence *res = &ring->residence;

	res->complete = ring->options.complete;
	res->begun_ns = stage_now_ns();
	res->lost_ns = 0;
	res->given = 0;
}

/* --- the rest --- */

void residence_begin_call(struct ring *ring)
{
	struct rest *rest = &ring->rest;

	rest->users++;
	if (!rest->is_resting)
		return;
	rest->is_resting = false;
	/* The pause is no period. */
	rest->given_ns = 0;
	pthread_cond_signal(&ring->room);
}

void residence_end_call(struct ring *ring)
{
	struct rest *rest = &ring->rest;

	rest->users--;
	rest->asked_ns = stage_now_ns();
}

uint64_t residence_rests_at(const struct ring *ring)
{
	const struct rest *rest = &ring->rest;

	/* Freeing memory of a GPU waits for the device. */
	if (rest->is_resting || rest->users || ring->options.plan.device)
		return 0;
	return rest->asked_ns + REST_MS * MS + PERIODS * rest->period_ns;
}

/* Whether making the prefetched batches again goes unnoticed. A batch callback
   would run again, and failed samples would count twice. Makers have other
   memory, and a replay keeps its batches. */
static bool may_drop(const struct ring *ring)
{
	const struct ring_options *o = &ring->options;
	const struct turn *t;

	if (o->callback || o->has_makers || o->replay)
		return false;
	DL_FOREACH(ring->turns, t)
	{
		if (t->state != TURN_HELD &&
		    (t->error || atomic_load(&t->step->failed)))
			return false;
	}
	return true;
}

void residence_rest(struct ring *ring)
{
	struct turn *t, *next;

	ring->rest.is_resting = true;
	if (may_drop(ring)) {
		ring->produced = ring->given;
		ring->given_sequence = ring->produced_sequence;
		turns_drop_stale(ring);
	}
	LL_FOREACH_SAFE(ring->free_turns, t, next)
	{
		turns_drop_free(ring, t);
	}
	turns_free_inputs(ring);
	residence_reset(ring);
}

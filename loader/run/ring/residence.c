/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/residence.h"

#include <utlist.h>

#include "fs/base/util/bytes.h"

enum {
	/* Turns that were of no use at so many grants of bodies are freed. */
	GRANTS = 4,
	/* A user who has just taken a batch often releases the previous one, so
	   wait for that rather than to allocate memory: this part of the time
	   from batch to batch, within limits. */
	RELEASE_PART = 8,
	RELEASE_LEAST_MS = 20,
	RELEASE_MOST_MS = 100,
	/* If in a window of so many batches, and again in the following one,
	   the user waited for blocked workers for more than this part of the
	   time, all prefetched batches may be complete. A single slow window
	   has other causes: a user who keeps the first batch, for example. */
	WINDOW = 32,
	SLOW_PART = 50,
	/* The ring is idle after this time, and so many times the longest of
	   the last periods from batch to batch. */
	IDLE_MS = 1000,
	PERIODS = 2,
	/* A period is forgotten by an eighth with each batch. */
	FORGET = 8,
};

static const uint64_t MS = 1000000;

/* Whether the turn needs a body for its first `rows` rows. */
static bool needs_body(const struct ring *ring, const struct turn *t,
		       uint32_t rows)
{
	return t->memory != MEMORY_FULL && t->is_split &&
	       rows > ring->options.head_rows;
}

/* Whether a turn may have more than a head: it is among the next ones to
   deliver, or has been asked for. */
static bool may_complete(const struct ring *ring, const struct turn *t)
{
	return t->is_named ||
	       t->sequence <
		       ring->delivered_sequence + ring->residence.complete_max;
}

/* Whether to wait for a release rather than to take the memory of a free turn
   or to allocate some. */
static bool expects_release(const struct ring *ring)
{
	const struct residence *res = &ring->residence;

	if (res->has_released || stage_now_ns() >= res->release_due_ns)
		return false;
	return res->had_released || !turns_find_free(ring, MEMORY_FULL);
}

static bool has_rows(const struct turn *t)
{
	return t->state == TURN_RUNNING &&
	       t->next_row < t->step->batch.num_samples;
}

static bool may_run(const struct ring *ring, const struct turn *t)
{
	if (!needs_body(ring, t, t->next_row + 1))
		return true;
	return may_complete(ring, t) && !t->is_growing &&
	       !expects_release(ring);
}

/* While a turn waits for a body, a later one does not begin, because it can
   have the head of the turn that loses the body. */
struct turn *residence_find_rows(const struct ring *ring)
{
	struct turn *t;
	bool waits = false;

	DL_FOREACH(ring->turns, t)
	{
		if (!has_rows(t))
			continue;
		if (may_run(ring, t) &&
		    (!waits || t->memory != MEMORY_NONE || t->is_named))
			return t;
		waits = true;
	}
	return NULL;
}

uint32_t residence_limit(const struct ring *ring, const struct turn *t,
			 uint32_t n)
{
	uint32_t head = ring->options.head_rows;

	if (t->memory == MEMORY_FULL || !t->is_split || t->next_row >= head)
		return n;
	return (uint32_t)min_u64(n, head - t->next_row);
}

/* Frees turns that were free at each of the last grants. */
static void trim_free(struct ring *ring)
{
	struct residence *res = &ring->residence;
	uint32_t n = 0;
	struct turn *t;

	LL_FOREACH(ring->free_turns, t)
	{
		n += t->memory == MEMORY_FULL;
	}
	res->free_low = res->grants ? (uint32_t)min_u64(res->free_low, n) : n;
	res->grants = (res->grants + 1) % GRANTS;
	if (res->grants)
		return;
	for (; res->free_low; res->free_low--)
		turns_drop_free(ring, turns_find_free(ring, MEMORY_FULL));
}

/* Grants a turn without memory that of a free one, or lets it allocate a head.
 */
static void grant_head(struct ring *ring, struct turn *t)
{
	struct turn *from = NULL;

	if (may_complete(ring, t))
		from = turns_find_free(ring, MEMORY_FULL);
	if (!from)
		from = turns_find_free(ring, MEMORY_HEAD);
	t->memory = from ? from->memory : MEMORY_HEAD;
	ring->residence.parts += !from;
	if (!from)
		return;
	step_swap_memory(t->step, from->step);
	from->memory = MEMORY_NONE;
}

/* Moves the body of a free turn. Workers begin one batch at a time, so one free
   head is enough. */
static void move_body(struct ring *ring, struct turn *t, struct turn *from)
{
	turns_remove_free(ring, from);
	t->is_growing = true;
	turns_unlock(ring);
	step_move_body(t->step, from->step, ring->options.head_rows);
	turns_lock(ring);
	t->is_growing = false;
	from->memory = MEMORY_HEAD;
	if (ring->idle.is_idle || turns_find_free(ring, MEMORY_HEAD))
		turn_close(ring, from);
	else
		turns_add_free(ring, from);
}

/* Grants a turn the memory of all its rows. */
static void grant_body(struct ring *ring, struct turn *t)
{
	struct turn *from = turns_find_free(ring, MEMORY_FULL);

	if (from)
		move_body(ring, t, from);
	else
		ring->residence.parts++;
	if (t->blocked_since_ns)
		t->blocked_ns = stage_now_ns() - t->blocked_since_ns;
	t->memory = MEMORY_FULL;
	trim_free(ring);
	pthread_cond_broadcast(&ring->work);
}

void residence_grant(struct ring *ring, struct turn *t)
{
	if (t->memory == MEMORY_NONE && t->is_split)
		grant_head(ring, t);
	if (needs_body(ring, t, t->next_row))
		grant_body(ring, t);
}

/* Returns the first turn that waits for a body, of those that get one next, or
   of the others; or NULL. */
static struct turn *find_blocked(const struct ring *ring)
{
	struct turn *t, *later = NULL;

	DL_FOREACH(ring->turns, t)
	{
		if (!has_rows(t) || t->is_growing ||
		    !needs_body(ring, t, t->next_row + 1))
			continue;
		if (may_complete(ring, t))
			return t;
		later = later ? later : t;
	}
	return later;
}

void residence_wait(struct ring *ring, atomic_uint_fast64_t *counter)
{
	struct turn *t = find_blocked(ring);
	uint64_t until = 0;

	if (t && may_complete(ring, t))
		until = ring->residence.release_due_ns;
	if (t && !t->blocked_since_ns)
		t->blocked_since_ns = stage_now_ns();
	ring->residence.is_blocked = ring->residence.is_blocked || t;
	turns_wait_counted(ring, &ring->work, until, counter);
}

static uint64_t release_ns(const struct ring *ring)
{
	uint64_t part = ring->idle.period_ns / RELEASE_PART;

	return min_u64(max_u64(part, RELEASE_LEAST_MS * MS),
		       RELEASE_MOST_MS * MS);
}

static void note_period(struct idle *idle, uint64_t now)
{
	if (idle->delivered_ns)
		idle->period_ns =
			max_u64(now - idle->delivered_ns,
				idle->period_ns - idle->period_ns / FORGET);
	idle->delivered_ns = now;
}

void residence_note_delivery(struct ring *ring)
{
	struct residence *res = &ring->residence;
	uint64_t now = stage_now_ns();
	bool slow;

	note_period(&ring->idle, now);
	res->release_due_ns = now + release_ns(ring);
	res->had_released = res->has_released;
	res->has_released = false;
	turns_wake_blocked(ring);
	if (++res->window_batches < WINDOW)
		return;
	slow = res->window_blocked_ns >
	       (now - res->window_begun_ns) / SLOW_PART;
	if (slow && res->was_slow)
		res->complete_max = ring->options.prefetch;
	res->was_slow = slow;
	res->window_begun_ns = now;
	res->window_blocked_ns = 0;
	res->window_batches = 0;
}

void residence_note_release(struct ring *ring)
{
	struct residence *res = &ring->residence;

	res->has_released |= stage_now_ns() < res->release_due_ns;
}

void residence_note_wait(struct ring *ring, const struct turn *t, uint64_t ns)
{
	ring->residence.window_blocked_ns += min_u64(ns, t->blocked_ns);
}

void residence_reset(struct ring *ring)
{
	struct residence *res = &ring->residence;

	res->complete_max = ring->options.complete;
	res->window_begun_ns = stage_now_ns();
	res->window_blocked_ns = 0;
	res->window_batches = 0;
}

/* --- the idle ring --- */

void residence_begin_call(struct ring *ring)
{
	struct idle *idle = &ring->idle;

	idle->calls++;
	if (!idle->is_idle)
		return;
	idle->is_idle = false;
	/* The pause is no period. */
	idle->delivered_ns = 0;
	pthread_cond_signal(&ring->room);
}

void residence_end_call(struct ring *ring)
{
	struct idle *idle = &ring->idle;

	idle->calls--;
	idle->called_ns = stage_now_ns();
}

uint64_t residence_trims_at(const struct ring *ring)
{
	const struct idle *idle = &ring->idle;

	/* Freeing memory of a GPU waits for the device. */
	if (idle->is_idle || idle->calls || ring->options.plan.device)
		return 0;
	return idle->called_ns + IDLE_MS * MS + PERIODS * idle->period_ns;
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

void residence_trim(struct ring *ring)
{
	struct turn *t, *next;

	ring->idle.is_idle = true;
	if (may_drop(ring)) {
		ring->begun = ring->delivered;
		ring->delivered_sequence = ring->begun_sequence;
		turns_drop_stale(ring);
	}
	LL_FOREACH_SAFE(ring->free_turns, t, next)
	{
		turns_drop_free(ring, t);
	}
	turns_free_inputs(ring);
	residence_reset(ring);
}

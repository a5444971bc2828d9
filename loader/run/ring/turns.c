/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/turns.h"

#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/clock.h"
#include "loader/run/feed/feed.h"
#include "loader/run/gpu/cuda.h"

void turns_end_scope(struct ring **ring)
{
	turns_unlock(*ring);
}

void turns_push_range(struct ring *ring, const char *name)
{
	struct device *d = ring->options.plan.device;

	cuda_range_push(d ? device_cuda(d) : NULL, name);
}

void turns_pop_range(struct ring *ring)
{
	struct device *d = ring->options.plan.device;

	cuda_range_pop(d ? device_cuda(d) : NULL);
}

void turns_wait_counted(struct ring *ring, pthread_cond_t *cond,
			uint64_t until_ns, atomic_uint_fast64_t *counter)
{
	const struct timespec until = clock_at_ns((int64_t)until_ns);
	uint64_t before = stage_now_ns();

	turns_wait(ring, cond, until_ns ? &until : NULL);
	counters_add_own(counter, stage_now_ns() - before);
}

bool turn_is_stale(const struct ring *ring, const struct turn *t)
{
	return t->state != TURN_HELD && t->sequence < ring->delivered_sequence;
}

void turn_close(struct ring *ring, struct turn *t)
{
	feed_release(ring->options.feed, &t->step->input);
	step_close(t->step);
	ring->residence.parts -= t->memory;
	free(t);
}

void turn_land(struct ring *ring, const struct turn *t)
{
	if (t->is_named)
		ring->named.in_flight--;
	else
		ring->in_flight--;
}

struct turn *turns_find_free(const struct ring *ring, enum turn_memory memory)
{
	struct turn *t;

	LL_FOREACH(ring->free_turns, t)
	{
		if (t->memory == memory)
			return t;
	}
	return NULL;
}

void turns_remove_free(struct ring *ring, struct turn *t)
{
	LL_DELETE(ring->free_turns, t);
	ring->num_free--;
}

void turns_add_free(struct ring *ring, struct turn *t)
{
	LL_PREPEND(ring->free_turns, t);
	ring->num_free++;
}

void turns_drop_free(struct ring *ring, struct turn *t)
{
	turns_remove_free(ring, t);
	turn_close(ring, t);
}

void turns_wake_blocked(struct ring *ring)
{
	if (!ring->residence.is_blocked)
		return;
	ring->residence.is_blocked = false;
	pthread_cond_broadcast(&ring->work);
}

/* Frees the turn if more than `prefetch` others are free. Keeps a turn with GPU
   memory, because freeing that memory waits for the device, and a cached turn,
   because other turns may share its tensors. */
void turn_recycle(struct ring *ring, struct turn *t)
{
	DL_DELETE(ring->turns, t);
	if (t->step->parcel)
		device_batch_end(t->step->parcel);
	/* Only a failed or stale turn still has its batch file here. */
	feed_release(ring->options.feed, &t->step->input);
	if (t->state != TURN_HELD)
		turn_land(ring, t);
	t->state = TURN_FREE;
	if (t->is_cached) {
		LL_PREPEND(ring->cached_turns, t);
	} else if ((ring->stopping || ring->idle.is_idle ||
		    ring->num_free > ring->options.prefetch) &&
		   !t->step->parcel) {
		turn_close(ring, t);
	} else {
		turns_add_free(ring, t);
	}
	turns_wake_blocked(ring);
	pthread_cond_signal(&ring->room);
}

void turns_drop_stale(struct ring *ring)
{
	struct turn *t, *next;

	DL_FOREACH_SAFE(ring->turns, t, next)
	{
		if (!turn_is_stale(ring, t))
			continue;
		if (t->state == TURN_RUNNING) {
			t->rows_left -=
				t->step->batch.num_samples - t->next_row;
			t->next_row = t->step->batch.num_samples;
		}
		if (t->state == TURN_DONE || t->state == TURN_QUEUED ||
		    (t->state == TURN_RUNNING && !t->rows_left))
			turn_recycle(ring, t);
	}
}

/* If the replay caches this turn, lets later turns share its tensors. */
static void cache_turn(struct ring *ring, struct turn *t)
{
	if (!ring->options.replay || t->is_named)
		return;
	if (!t->error && !t->replays)
		t->is_cached = replay_add(ring->options.replay, t->step);
	pthread_cond_signal(&ring->room);
}

void turn_finish(struct ring *ring, struct turn *t, int error)
{
	if (!t->error)
		t->error = error;
	t->state = TURN_DONE;
	if (turn_is_stale(ring, t)) {
		turn_recycle(ring, t);
		return;
	}
	cache_turn(ring, t);
	pthread_cond_broadcast(&ring->ready);
	if (ring->options.has_makers)
		turns_offer(ring);
}

/* Returns the memory of a turn that no worker has worked on. */
static enum turn_memory first_memory(const struct ring *ring)
{
	return ring->options.head_rows ? MEMORY_NONE : MEMORY_FULL;
}

int turn_take_free(struct ring *ring, struct turn **out)
{
	struct turn *t = turns_find_free(ring, first_memory(ring));
	int r;

	if (t) {
		turns_remove_free(ring, t);
		*out = t;
		return 0;
	}
	t = calloc(1, sizeof(*t));
	r = t ? step_open(&ring->options.plan, &t->step) : -ENOMEM;
	if (r) {
		free(t);
		return r;
	}
	t->memory = first_memory(ring);
	ring->residence.parts += t->memory;
	*out = t;
	return 0;
}

void turn_take_input(struct ring *ring, struct turn *t)
{
	struct buffer *own = &t->step->input.own;

	if (!own->capacity && ring->num_inputs)
		*own = ring->inputs[--ring->num_inputs];
}

void turns_free_inputs(struct ring *ring)
{
	while (ring->num_inputs)
		buffer_fini(&ring->inputs[--ring->num_inputs]);
}

void turn_give_input(struct ring *ring, struct turn *t)
{
	struct buffer *own = &t->step->input.own;

	if (!t->step->copies || !own->capacity)
		return;
	if (ring->num_inputs < ring->options.prefetch && !ring->idle.is_idle)
		ring->inputs[ring->num_inputs++] = *own;
	else
		buffer_fini(own);
	*own = (struct buffer){ .bytes = NULL };
}

void turns_offer(struct ring *ring)
{
	pthread_cond_signal(&ring->room);
	pthread_cond_broadcast(&ring->makers.queued);
}

void turn_begin(struct ring *ring, struct turn *t)
{
	t->replays = NULL;
	t->state = TURN_FETCHING;
	t->error = 0;
	t->is_named = t->is_padding = false;
	t->blocked_since_ns = t->blocked_ns = 0;
	t->is_stalled = t->is_repeated = t->is_refused = false;
	t->times = (struct throughput_times){
		.has_upload = t->step->parcel != NULL,
	};
	t->step->is_sent = false;
	atomic_store(&t->step->failed, 0);
	t->step->side = offload_choose(&ring->balance);
	DL_APPEND(ring->turns, t);
}

void turns_give_up(struct ring *ring, int error)
{
	ring->worker_error = error;
	pthread_cond_broadcast(&ring->ready);
}

void turn_begin_rows(struct ring *ring, struct turn *t)
{
	t->next_row = 0;
	t->rows_left = t->step->batch.num_samples;
	pthread_cond_broadcast(&ring->work);
}

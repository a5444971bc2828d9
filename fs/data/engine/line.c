/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/line.h"

#include <stddef.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

enum {
	/* Milliseconds until the next try if no line_freed() is called. */
	LOOK_MS = 50,
	/* Milliseconds that a thread delays later threads that need far less.
	   Memory that is in use for a read is free by then. */
	BLOCKS_MS = 500,
};

void line_init(struct line *l)
{
	*l = (struct line){ .frees = 0 };
	pthread_mutex_init(&l->lock, NULL);
	clock_cond_init(&l->freed);
}

void line_destroy(struct line *l)
{
	pthread_cond_destroy(&l->freed);
	pthread_mutex_destroy(&l->lock);
}

void line_enter(struct line *l, struct line_place *me)
{
	me->since_ms = clock_coarse_ms();
	scoped_lock(&l->lock);
	DL_APPEND(l->places, me);
}

void line_leave(struct line *l, struct line_place *me)
{
	scoped_lock(&l->lock);
	DL_DELETE(l->places, me);
	l->frees++;
	pthread_cond_broadcast(&l->freed);
}

static bool holds_up(const struct line_place *first,
		     const struct line_place *me, int64_t now)
{
	return me->bytes > first->bytes / 2 ||
	       now - first->since_ms < BLOCKS_MS;
}

bool line_is_turn(struct line *l, const struct line_place *me)
{
	const struct line_place *place;
	int64_t now = clock_coarse_ms();

	scoped_lock(&l->lock);
	DL_FOREACH(l->places, place)
	{
		if (place == me)
			return true;
		if (holds_up(place, me, now))
			return false;
	}
	return true;
}

bool line_is_empty(struct line *l)
{
	scoped_lock(&l->lock);
	return !l->places;
}

void line_freed(struct line *l)
{
	scoped_lock(&l->lock);
	l->frees++;
	pthread_cond_broadcast(&l->freed);
}

uint64_t line_frees(struct line *l)
{
	scoped_lock(&l->lock);
	return l->frees;
}

void line_wait(struct line *l, uint64_t frees)
{
	struct timespec end = clock_in_ms(LOOK_MS);
	int64_t begin = clock_ns();

	scoped_lock(&l->lock);
	while (l->frees == frees &&
	       !pthread_cond_timedwait(&l->freed, &l->lock, &end))
		;
	l->wait_ns += (uint64_t)(clock_ns() - begin);
}

void line_stats(struct line *l, struct line_stats *out)
{
	const struct line_place *place;

	scoped_lock(&l->lock);
	*out = (struct line_stats){ .wait_ns = l->wait_ns };
	DL_COUNT(l->places, place, out->waiting);
}

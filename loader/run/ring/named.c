/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/named.h"

#include <string.h>
#include <utlist.h>

/* --- the names that wait for the fetching thread --- */

static unsigned find_name(const struct named *n, uint64_t epoch,
			  uint64_t number)
{
	unsigned i = 0;

	while (i < n->num &&
	       (n->names[i].epoch != epoch || n->names[i].number != number))
		i++;
	return i;
}

static struct name take_name(struct named *n, unsigned i)
{
	struct name name = n->names[i];

	n->num--;
	memmove(&n->names[i], &n->names[i + 1],
		(n->num - i) * sizeof(*n->names));
	return name;
}

static void add_name(struct named *n, unsigned i, uint64_t epoch,
		     uint64_t number)
{
	if (n->num == NAMED_MAX)
		take_name(n, i ? 0 : NAMED_MAX - 1);
	i = i < n->num ? i : n->num;
	memmove(&n->names[i + 1], &n->names[i],
		(n->num - i) * sizeof(*n->names));
	n->names[i] = (struct name){ epoch, number };
	n->num++;
}

bool named_may_begin(const struct ring *ring)
{
	return ring->named.num && !ring->worker_error &&
	       ring->named.in_flight < ring->options.prefetch;
}

struct name named_begin(struct ring *ring)
{
	ring->named.in_flight++;
	return take_name(&ring->named, 0);
}

struct turn *named_find(struct ring *ring, uint64_t epoch, uint64_t number)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->is_named && t->state != TURN_HELD &&
		    t->name.epoch == epoch && t->name.number == number)
			return t;
	}
	return NULL;
}

/* Frees the oldest batch that was asked for and never taken. */
static void drop_oldest(struct ring *ring)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (!t->is_named || t->state != TURN_DONE)
			continue;
		turn_recycle(ring, t);
		return;
	}
}

void named_hurry(struct ring *ring, uint64_t epoch, uint64_t number)
{
	struct named *n = &ring->named;
	unsigned i = find_name(n, epoch, number);

	if (i < n->num)
		take_name(n, i);
	add_name(n, 0, epoch, number);
	if (n->in_flight >= ring->options.prefetch)
		drop_oldest(ring);
	pthread_cond_signal(&ring->room);
}

void named_add(struct ring *ring, uint64_t epoch, uint64_t number)
{
	if (find_name(&ring->named, epoch, number) == ring->named.num)
		add_name(&ring->named, NAMED_MAX, epoch, number);
	pthread_cond_signal(&ring->room);
}

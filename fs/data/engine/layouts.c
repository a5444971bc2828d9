/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/layouts.h"

#include <pthread.h>
#include <stdlib.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/engine/slot.h"

enum {
	LAYOUTS_MAX = 64,
	/* The part of the budget. */
	LAYOUTS_PART = 16,
	/* The most bytes: 64 layouts of 4000 samples with 64 fields. */
	LAYOUT_BYTES_MAX = 64 << 20,
};

struct layouts {
	struct budget *budget;
	struct slots *slots;
	pthread_mutex_t lock; /* guards the members below */
	struct batch *cached[LAYOUTS_MAX];
	size_t oldest; /* index in `cached` to replace next */
	uint64_t bytes;
};

int layouts_open(struct budget *budget, struct slots *slots,
		 struct layouts **out)
{
	struct layouts *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->budget = budget;
	l->slots = slots;
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

void layouts_close(struct layouts *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LAYOUTS_MAX; i++)
		batch_put(&l->cached[i]);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Returns whether a failed sample of a cached batch may be readable by now. */
static bool may_improve(struct layouts *l, const struct batch *batch)
{
	return batch->has_io_errors || slots_failed(l->slots, batch);
}

static bool is_of(const struct batch *batch, const struct batch_key *key)
{
	return batch->key.number == key->number &&
	       batch->key.epoch == key->epoch && batch->key.ds == key->ds &&
	       spec_equal(batch->key.spec, key->spec);
}

/* Returns where the layout is, or NULL. The caller holds the lock. */
static struct batch **find(struct layouts *l, const struct batch_key *key)
{
	for (size_t i = 0; i < LAYOUTS_MAX; i++) {
		if (l->cached[i] && is_of(l->cached[i], key))
			return &l->cached[i];
	}
	return NULL;
}

/* The caller holds the lock. */
static void drop(struct layouts *l, struct batch **batch)
{
	if (!*batch)
		return;
	l->bytes -= (*batch)->charged;
	batch_put(batch);
}

bool layouts_find(struct layouts *l, const struct batch_key *key, bool afresh,
		  struct batch **out)
{
	struct batch **found;

	scoped_lock(&l->lock);
	found = find(l, key);
	if (found && afresh && may_improve(l, *found)) {
		drop(l, found);
		return false;
	}
	if (!found)
		return false;
	batch_get(*found);
	*out = *found;
	return true;
}

/* Drops the oldest layouts until all together fit into `bytes`. The caller
   holds the lock. */
static void trim(struct layouts *l, uint64_t bytes)
{
	for (size_t i = 0; i < LAYOUTS_MAX && l->bytes > bytes; i++)
		drop(l, &l->cached[(l->oldest + i) % LAYOUTS_MAX]);
}

void layouts_keep(struct layouts *l, struct batch **batch)
{
	struct budget_stats stats;
	struct batch **found;

	budget_stats(l->budget, &stats);
	scoped_lock(&l->lock);
	found = find(l, &(*batch)->key);
	if (found) {
		batch_put(batch);
		batch_get(*found);
		*batch = *found;
		return;
	}
	drop(l, &l->cached[l->oldest]);
	batch_get(*batch);
	l->cached[l->oldest] = *batch;
	l->bytes += (*batch)->charged;
	l->oldest = (l->oldest + 1) % LAYOUTS_MAX;
	trim(l, min_u64(LAYOUT_BYTES_MAX, stats.limit / LAYOUTS_PART));
}

bool layouts_reclaim(void *layouts, uint64_t bytes)
{
	struct layouts *l = layouts;
	uint64_t before;

	scoped_lock(&l->lock);
	before = l->bytes;
	trim(l, before - min_u64(before, bytes));
	return l->bytes < before;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/collator.h"

#include <errno.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"
#include "fs/data/engine/team.h"

enum {
	WHY_SIZE = 200,
	/* Bytes of payloads that are read ahead of a reader: enough to keep a
	   device busy while a batch is collated. */
	READ_AHEAD_MIN = 16 << 20,
	READ_AHEAD_MAX = 256 << 20,
};

void collator_explain_size(const struct collator *c, char *out, size_t size)
{
	const char *advice =
		c->cache
			? ": half of cache_size: use a smaller batch, or a larger cache_size"
			: ": use a smaller batch";

	snprintf(out, size,
		 "a batch has %llu bytes, but at most %llu fit into memory%s",
		 (unsigned long long)atomic_load(&c->refused_bytes),
		 (unsigned long long)c->memory->slot_bytes, advice);
}

int collator_layout(struct collator *c, const struct batch_key *key,
		    bool afresh, struct batch **out)
{
	char why[WHY_SIZE];
	struct batch *batch;
	int r;

	if (layouts_find(c->layouts, key, afresh, out))
		return 0;
	r = batch_open(key, c->memory->budget, &batch);
	if (r)
		return r;
	if (batch->vfile.size > c->memory->slot_bytes) {
		atomic_store(&c->refused_bytes, batch->vfile.size);
		collator_explain_size(c, why, sizeof(why));
		log_error(c->log, "%s: %s", dataset_path(key->ds), why);
		batch_put(&batch);
		return -EFBIG;
	}
	layouts_keep(c->layouts, &batch);
	*out = batch;
	return 0;
}

/* The tally of the batch has counted its waits. */
static void count(struct collator *c, const struct batch *batch, uint64_t ns)
{
	uint64_t wait = counters_get(&batch->tally.n[PAYLOAD_WAIT_NS]);

	wait = min_u64(wait, ns);
	counters_add(&c->counters.items, 1);
	counters_add(&c->counters.bytes, batch->vfile.size);
	counters_add(&c->counters.busy_ns, ns - wait);
	counters_add(&c->counters.input_wait_ns, wait);
	counters_add(&c->counters.times[histogram_bucket(ns)], 1);
}

/* Collates a batch into a slot, or into memory of its reader. */
static int collate_batch(void *arg, const struct batch *batch, void *buf,
			 uint64_t *marks)
{
	struct collator *c = arg;
	int64_t begin = clock_ns();
	bool failed;
	int r;

	plan_fetch(c->plan, batch);
	r = batch_collate(batch, c->team, buf, &failed);
	count(c, batch, (uint64_t)(clock_ns() - begin));
	plan_done(c->plan, batch);
	if (!r)
		*marks = failed ? batch_marks(batch, buf) : 0;
	return r;
}

/* The cache gives way to all other uses of the budget. */
static void resize_cache(void *arg, uint64_t bytes)
{
	struct collator *c = arg;

	cache_set_limit(c->cache, bytes);
	plan_set_room(c->plan, bytes);
}

int collator_slot(struct collator *c, struct batch *batch, struct slot **out)
{
	int r = slots_get(c->slots, batch, out);

	if (!r)
		plan_shared(c->plan, batch);
	return r;
}

int collator_direct(struct collator *c, const struct batch *batch, void *bytes)
{
	uint64_t marks;
	int r = collate_batch(c, batch, bytes, &marks);

	atomic_fetch_add(&c->direct, 1);
	return r;
}

bool collator_prepare(struct collator *c, const struct batch_key *key)
{
	struct batch *batch;

	/* The reader may have passed the batch while this work was queued. */
	if (!plan_wants(c->plan, key) || collator_layout(c, key, false, &batch))
		return false;
	slots_prepare(c->slots, batch);
	batch_put(&batch);
	return true;
}

bool collator_tidy(struct collator *c)
{
	bool is_left = slots_tidy(c->slots);

	budget_settle(c->memory->budget);
	return is_left;
}

/* --- opening and closing --- */

static int open_cache(struct collator *c, struct dataset *const *datasets,
		      size_t n)
{
	const struct cache_options cache = {
		.limit = c->memory->choice.cache_size,
		.cold = c->memory->choice.cold_size,
		.next_use = plan_next_use,
		.read_done = plan_read_done,
		.wasted = plan_wasted,
		.arg = c->plan,
	};
	int r;

	if (c->memory->choice.mode != CACHE_PROCESS)
		return 0;
	r = cache_open(&cache, &c->cache);
	for (size_t i = 0; i < n && !r; i++)
		r = cache_add(c->cache, datasets[i]);
	if (!r)
		r = budget_take(c->memory->budget, BUDGET_COLD,
				c->memory->choice.cold_size, 0);
	if (!r)
		budget_set_elastic(c->memory->budget,
				   engine_memory_cache_min(c->memory),
				   resize_cache, c);
	return r;
}

static bool reclaim_slots(void *arg, uint64_t bytes)
{
	struct collator *c = arg;

	(void)bytes;
	return slots_reclaim(c->slots);
}

static int open_slots(struct collator *c)
{
	const struct slots_options slots = {
		.limit = c->memory->slot_bytes,
		.keep = c->memory->slot_reserve,
		.budget = c->memory->budget,
		.collate = collate_batch,
		.arg = c,
	};
	int r = slots_open(&slots, &c->slots);

	if (!r)
		r = layouts_open(c->memory->budget, c->slots, &c->layouts);
	if (r)
		return r;
	budget_add_reclaimer(c->memory->budget, layouts_reclaim, c->layouts);
	budget_add_reclaimer(c->memory->budget, reclaim_slots, c);
	return 0;
}

int collator_open(struct collator *c, const struct engine_memory *memory,
		  struct dataset *const *datasets, size_t num_datasets,
		  struct log *log)
{
	uint64_t ahead = min_u64(READ_AHEAD_MAX, memory->choice.cache_size / 8);
	int r;

	c->log = log;
	c->memory = memory;
	r = plan_open(max_u64(READ_AHEAD_MIN, ahead), &c->plan);
	if (!r)
		r = open_slots(c);
	return r ? r : open_cache(c, datasets, num_datasets);
}

int collator_start(struct collator *c, unsigned helpers)
{
	int r = 0;

	if (c->cache)
		r = plan_start(c->plan, c->cache, c->memory->choice.cache_size);
	if (!r && helpers)
		r = team_open(helpers, &c->team);
	return r;
}

void collator_stop(struct collator *c)
{
	team_close(steal(c->team));
	if (c->plan)
		plan_stop(c->plan);
}

void collator_close(struct collator *c)
{
	slots_close(c->slots);
	cache_close(c->cache);
	plan_close(c->plan);
	layouts_close(c->layouts);
}

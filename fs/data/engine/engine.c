/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/engine.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/engine/collator.h"
#include "fs/data/engine/work.h"

enum {
	THREADS_DEFAULT = 2,
	/* The most prefetched batches of a reader. */
	PREFETCH_MAX = 8,
};

/* A layout to compute, or a batch to collate. */
struct ticket {
	struct task task; /* the first member */
	struct engine *engine;
	struct batch_key key;
	struct spec spec;      /* key.spec points to it */
	layout_done *laid_out; /* NULL: the members below are set */
	struct batch *batch;
	struct dest dest;
	batch_done *done;
	void *arg;
};

struct engine {
	struct log *log;
	unsigned prefetch;
	struct engine_memory memory;
	struct collator collator;
	struct dataset **datasets;
	size_t num_datasets;
	unsigned helpers;
	struct work *work;
};

struct stream {
	struct engine *engine;
	struct dataset *ds;
	uint64_t user;
	struct batch_share share;
	struct spec spec;
	uint64_t epoch;
};

/* --- work --- */

static int get_slot(struct engine *e, struct batch *batch, struct slot **out)
{
	int r = collator_slot(&e->collator, batch, out);

	work_note_untidy(e->work);
	return r;
}

static void run_layout(struct ticket *t)
{
	struct batch *batch = NULL;
	int r = collator_layout(&t->engine->collator, &t->key, true, &batch);

	t->laid_out(t->arg, r, batch);
}

static void run_collation(struct ticket *t, struct trace_track *track)
{
	struct engine *e = t->engine;
	int64_t begin = clock_ns();
	struct slot *slot = NULL;
	int r;

	if (t->dest.bytes)
		r = collator_direct(&e->collator, t->batch, t->dest.bytes);
	else
		r = get_slot(e, t->batch, &slot);
	trace_span(track, TRACE_COLLATE, (uint64_t)begin, (uint64_t)clock_ns(),
		   t->key.epoch, t->key.number);
	t->done(t->arg, r, slot);
}

static void run_task(struct task *task, struct trace_track *track)
{
	struct ticket *t = (struct ticket *)task;

	if (t->laid_out)
		run_layout(t);
	else
		run_collation(t, track);
}

static void prepare_coming(void *arg, const struct coming *c)
{
	struct engine *e = arg;
	const struct batch_key key = { c->ds, &c->spec, c->epoch, c->number };

	if (collator_prepare(&e->collator, &key))
		work_note_untidy(e->work);
}

static bool tidy_slots(void *arg)
{
	struct engine *e = arg;

	return collator_tidy(&e->collator);
}

/* --- tickets --- */

static struct batch_key key_of(const struct stream *s, uint64_t number)
{
	return (struct batch_key){ s->ds, &s->spec, s->epoch, number };
}

/* Queues a ticket like `from`. */
static int submit(const struct stream *stream, const struct ticket *from,
		  struct ticket **out)
{
	struct ticket *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = *from;
	t->engine = stream->engine;
	t->spec = *from->key.spec;
	t->key.spec = &t->spec;
	if (t->batch)
		batch_get(t->batch);
	/* Set before the work can end, for its callback may use it. */
	*out = t;
	if (work_submit(t->engine->work, &t->task, t->key.ds, stream->user))
		return 0;
	batch_put(&t->batch);
	free(t);
	*out = NULL;
	return -ENOMEM;
}

int stream_submit(struct stream *stream, struct batch *batch,
		  const struct dest *dest, batch_done *done, void *arg,
		  struct ticket **out)
{
	const struct ticket t = {
		.key = batch->key,
		.batch = batch,
		.dest = *dest,
		.done = done,
		.arg = arg,
	};

	if (dest->bytes && dest->size < batch->vfile.size)
		return -EINVAL;
	return submit(stream, &t, out);
}

int stream_lay_out(struct stream *stream, uint64_t number, layout_done *done,
		   void *arg, struct ticket **out)
{
	const struct ticket t = {
		.key = key_of(stream, number),
		.laid_out = done,
		.arg = arg,
	};

	return submit(stream, &t, out);
}

static bool close_ticket(struct ticket **ticket, bool waits)
{
	struct ticket *t = *ticket;

	if (!t)
		return true;
	if (!work_withdraw(t->engine->work, &t->task, waits))
		return false;
	batch_put(&t->batch);
	free(steal(*ticket));
	return true;
}

void ticket_close(struct ticket **ticket)
{
	close_ticket(ticket, true);
}

bool ticket_try_close(struct ticket **ticket)
{
	return close_ticket(ticket, false);
}

bool stream_ready(struct stream *stream, const struct batch *batch)
{
	return slots_ready(stream->engine->collator.slots, batch);
}

int stream_slot(struct stream *stream, struct batch *batch, struct slot **out)
{
	return get_slot(stream->engine, batch, out);
}

void stream_leave(struct stream *stream, const struct batch *batch,
		  struct slot_reader *reader)
{
	slots_leave(stream->engine->collator.slots, batch, reader);
}

/* --- streams --- */

int stream_open(struct engine *engine, struct dataset *ds,
		const struct spec *spec, uint64_t epoch, struct stream **out)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct stream){
		.engine = engine,
		.ds = ds,
		.spec = *spec,
		.epoch = epoch,
	};
	*out = s;
	return 0;
}

void stream_set_user(struct stream *stream, uint64_t user)
{
	stream->user = user;
}

void stream_set_share(struct stream *stream, const struct batch_share *share)
{
	stream->share = *share;
}

void stream_close(struct stream *stream)
{
	free(stream);
}

int stream_batch(struct stream *s, uint64_t number, bool afresh,
		 struct batch **out)
{
	const struct batch_key key = key_of(s, number);

	return collator_layout(&s->engine->collator, &key, afresh, out);
}

bool stream_cached(struct stream *s, uint64_t number, struct batch **out)
{
	const struct batch_key key = key_of(s, number);

	return layouts_find(s->engine->collator.layouts, &key, true, out);
}

void stream_note(struct stream *s, uint64_t number)
{
	const struct batch_key key = key_of(s, number);
	struct plan_next next[PREFETCH_MAX];
	struct engine *e = s->engine;
	unsigned n =
		plan_note(e->collator.plan, &key, &s->share, next, e->prefetch);

	for (unsigned i = 0; i < n; i++)
		work_expect(e->work,
			    &(struct coming){ s->ds, s->spec, next[i].epoch,
					      next[i].number });
}

/* --- the engine --- */

static int keep_datasets(struct engine *e, const struct engine_options *o)
{
	e->datasets = calloc(o->num_datasets + 1, sizeof(*e->datasets));
	if (!e->datasets)
		return -ENOMEM;
	for (; e->num_datasets < o->num_datasets; e->num_datasets++)
		e->datasets[e->num_datasets] = o->datasets[e->num_datasets];
	return 0;
}

static int open_work(struct engine *e, const struct engine_options *o)
{
	const struct work_options work = {
		.trace = o->trace,
		.width = o->threads ? o->threads : THREADS_DEFAULT,
		.more = ENGINE_THREADS_MORE,
		.run = run_task,
		.prepare = prepare_coming,
		.tidy = tidy_slots,
		.patience_s = SLOTS_PATIENCE,
		.arg = e,
	};

	return work_open(&work, &e->work);
}

int engine_open(const struct engine_options *options, struct engine **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->log = options->log;
	e->helpers = options->helpers;
	e->prefetch = (unsigned)min_u64(options->prefetch, PREFETCH_MAX);
	r = keep_datasets(e, options);
	if (!r)
		r = engine_memory_open(&e->memory, &options->choice,
				       e->datasets, e->num_datasets,
				       options->slot_bytes, e->log);
	if (!r)
		r = collator_open(&e->collator, &e->memory, e->datasets,
				  e->num_datasets, e->log);
	if (!r)
		r = open_work(e, options);
	if (r)
		engine_close(e);
	else
		*out = e;
	return r;
}

int engine_start(struct engine *e)
{
	int r = collator_start(&e->collator, e->helpers);

	return r ? r : work_start(e->work);
}

void engine_stop(struct engine *e)
{
	if (!e)
		return;
	work_stop(e->work);
	collator_stop(&e->collator);
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	engine_stop(e);
	work_close(e->work);
	collator_close(&e->collator);
	engine_memory_close(&e->memory);
	free(e->datasets);
	free(e);
}

void engine_explain_size(const struct engine *e, char *out, size_t size)
{
	collator_explain_size(&e->collator, out, size);
}

struct dataset *const *engine_datasets(const struct engine *e, size_t *n)
{
	*n = e->num_datasets;
	return e->datasets;
}

const struct cache_choice *engine_choice(const struct engine *e)
{
	return &e->memory.choice;
}

const char *engine_tiers_why(const struct engine *e)
{
	return e->memory.why;
}

struct budget *engine_budget(const struct engine *e)
{
	return e->memory.budget;
}

void engine_budget_stats(struct engine *e, struct budget_stats *out)
{
	struct cache_stats cache = { .used_bytes = 0 };

	if (e->collator.cache)
		cache_stats(e->collator.cache, &cache);
	budget_stats(e->memory.budget, out);
	out->used[BUDGET_CACHE] = cache.used_bytes;
	out->used[BUDGET_COLD] = cache.cold_used_bytes;
}

uint64_t engine_shareable(const struct engine *e)
{
	return e->memory.shareable_bytes;
}

static void stage_stats(struct engine *e, struct engine_stats *out)
{
	struct counters_sum *s = out->stages;

	for (size_t i = 0; i < e->num_datasets; i++)
		counters_sum(&s[ENGINE_SOURCE],
			     source_reads(e->datasets[i]->source));
	if (e->collator.cache)
		counters_sum(&s[ENGINE_CACHE], cache_waits(e->collator.cache));
	s[ENGINE_CACHE].items =
		out->cache.hits + out->cache.stalled + out->cache.misses;
	s[ENGINE_CACHE].bytes = out->cache.delivered_bytes;
	counters_sum(&s[ENGINE_COLLATION], &e->collator.counters);
	s[ENGINE_COLLATION].room_wait_ns = out->slots.wait_ns;
}

void engine_stats(struct engine *e, struct engine_stats *out)
{
	struct verify_stats verify;

	*out = (struct engine_stats){ 0 };
	out->direct = atomic_load(&e->collator.direct);
	slots_stats(e->collator.slots, &out->slots);
	if (e->collator.cache)
		cache_stats(e->collator.cache, &out->cache);
	stage_stats(e, out);
	for (size_t i = 0; i < e->num_datasets; i++) {
		verify_stats(e->datasets[i], &verify);
		out->verify.bytes += verify.bytes;
		out->verify.bad_blocks += verify.bad_blocks;
	}
}

size_t engine_readers(struct engine *e, struct plan_reader *out, size_t max)
{
	return plan_readers(e->collator.plan, out, max);
}

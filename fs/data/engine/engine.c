/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/memory/memory.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/data/engine/lane.h"
#include "fs/data/engine/pool.h"
#include "fs/data/engine/team.h"

enum {
	THREADS_DEFAULT = 2,
	/* Without a process cache: bytes of slots that stay allocated for
	   reuse, and that loaders may hold. */
	SLOT_RESERVE = 256 << 20,
	/* The least budget without a process cache. */
	BUDGET_MIN = 64 << 20,
	/* Shares of the budget: all slots, all cached layouts, and the minimum
	   of a process cache. */
	SLOTS_PART = 2,
	LAYOUTS_PART = 16,
	CACHE_PART = 8,
	/* Verified datasets may take this part of the budget. */
	VERIFY_SHARE = 16,
	/* The most bytes of cached layouts: 64 of 4000 samples with 64
	   fields. */
	LAYOUT_BYTES_MAX = 64 << 20,
	/* The most layouts in the cache. */
	LAYOUTS_MAX = 64,
	/* The most prefetched batches of a reader, and of all readers
	   together. */
	PREFETCH_MAX = 8,
	COMING_MAX = 64,
	/* Bytes of payloads that are read ahead of a reader: enough to keep a
	   device busy while a batch is collated. */
	READ_AHEAD_MIN = 16 << 20,
	READ_AHEAD_MAX = 256 << 20,
};

enum ticket_state { TICKET_QUEUED, TICKET_RUNNING, TICKET_DONE };

/* The user of prefetching, for which no reader waits yet. */
#define USER_PREFETCH UINT64_MAX

/* A layout to compute, or a batch to collate. */
struct ticket {
	struct engine *engine;
	struct lane *lane;	    /* unless it is done */
	struct ticket *prev, *next; /* in lane.queue while queued */
	struct batch_key key;
	struct spec spec;      /* key.spec points to it */
	layout_done *laid_out; /* NULL: the members below are set */
	struct batch *batch;
	struct dest dest;
	batch_done *done;
	void *arg;
	enum ticket_state state; /* guarded by engine.lock */
};

/* A batch that a reader is expected to request. */
struct coming {
	struct dataset *ds;
	struct spec spec;
	uint64_t epoch;
	uint64_t number;
};

struct engine {
	struct log *log;
	struct trace *trace;
	struct cache_choice choice;
	char why[CACHE_WHY_SIZE];
	unsigned prefetch;
	uint64_t slot_bytes;   /* the most */
	atomic_uint_fast64_t refused_bytes; /* of the last batch over them */
	uint64_t slot_reserve; /* after use */
	struct budget *budget;
	uint64_t verify_bytes; /* taken for BUDGET_VERIFY */
	uint64_t remote_bytes; /* taken for BUDGET_REMOTE */
	struct slots *slots;
	struct plan *plan;
	struct cache *cache; /* NULL: the kernel's */
	struct dataset **datasets;
	size_t num_datasets;
	atomic_uint_fast64_t direct;
	struct counters collation;
	unsigned helpers;
	struct team *team;    /* NULL: none */
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t queued;
	pthread_cond_t finished; /* a ticket is done */
	struct lanes lanes;
	struct coming coming[COMING_MAX]; /* the oldest first */
	unsigned num_coming;
	struct batch *cached[LAYOUTS_MAX];
	size_t oldest; /* index in `cached` to replace next */
	uint64_t cached_bytes;
	bool is_untidy;	 /* there may be slots that no reader wants */
	bool is_watched; /* a thread will look for such slots */
	bool stopping;
	unsigned idle; /* threads that wait for work */
	pthread_t *threads;
	unsigned num_threads;
	unsigned max_threads;
};

struct stream {
	struct engine *engine;
	struct dataset *ds;
	uint64_t user;
	struct batch_share share;
	struct spec spec;
	uint64_t epoch;
};

/* --- threads; with the lock held --- */

/* An index in engine.coming; num_coming: there is none to begin. */
static unsigned coming_with_work(const struct engine *e)
{
	unsigned i = 0;

	while (i < e->num_coming &&
	       !lanes_have_room(&e->lanes, e->coming[i].ds))
		i++;
	return i;
}

static void *work(void *arg);

/* Wakes or starts a thread if there is something to do. */
static void rouse(struct engine *e)
{
	if (e->stopping ||
	    (!lanes_next(&e->lanes) && coming_with_work(e) == e->num_coming))
		return;
	/* If no thread can be started, those that work do this later. */
	if (e->idle)
		pthread_cond_signal(&e->queued);
	else if (e->num_threads < e->max_threads &&
		 !thread_start(&e->threads[e->num_threads], work, e))
		e->num_threads++;
}

/* --- layouts --- */

/* Returns whether a failed sample of a cached batch may be readable by now. */
static bool may_improve(struct engine *e, const struct batch *batch)
{
	return batch->has_io_errors || slots_failed(e->slots, batch);
}

static bool is_of(const struct batch *batch, const struct batch_key *key)
{
	return batch->key.number == key->number &&
	       batch->key.epoch == key->epoch && batch->key.ds == key->ds &&
	       spec_equal(batch->key.spec, key->spec);
}

/* The caller holds the lock. */
static void drop_cached(struct engine *e, size_t i)
{
	if (!e->cached[i])
		return;
	e->cached_bytes -= e->cached[i]->charged;
	batch_put(&e->cached[i]);
}

static bool find_cached(struct engine *e, const struct batch_key *key,
			bool afresh, struct batch **out)
{
	scoped_lock(&e->lock);
	for (size_t i = 0; i < LAYOUTS_MAX; i++) {
		if (!e->cached[i] || !is_of(e->cached[i], key))
			continue;
		if (afresh && may_improve(e, e->cached[i])) {
			drop_cached(e, i);
			return false;
		}
		batch_get(e->cached[i]);
		*out = e->cached[i];
		return true;
	}
	return false;
}

/* Drops the oldest layouts until all together fit into `bytes`. The caller
   holds the lock. */
static void trim_cached(struct engine *e, uint64_t bytes)
{
	for (size_t i = 0; i < LAYOUTS_MAX && e->cached_bytes > bytes; i++)
		drop_cached(e, (e->oldest + i) % LAYOUTS_MAX);
}

/* Slots are found by their layout, so each batch has only one layout. If two
   threads compute it at once, the first one stays. */
static void keep_layout(struct engine *e, struct batch **batch)
{
	struct budget_stats stats;

	budget_stats(e->budget, &stats);
	scoped_lock(&e->lock);
	for (size_t i = 0; i < LAYOUTS_MAX; i++) {
		if (!e->cached[i] || !is_of(e->cached[i], &(*batch)->key))
			continue;
		batch_put(batch);
		batch_get(e->cached[i]);
		*batch = e->cached[i];
		return;
	}
	drop_cached(e, e->oldest);
	batch_get(*batch);
	e->cached[e->oldest] = *batch;
	e->cached_bytes += (*batch)->charged;
	e->oldest = (e->oldest + 1) % LAYOUTS_MAX;
	trim_cached(e, min_u64(LAYOUT_BYTES_MAX, stats.limit / LAYOUTS_PART));
}

static bool reclaim_layouts(void *arg, uint64_t bytes)
{
	struct engine *e = arg;
	uint64_t before;

	scoped_lock(&e->lock);
	before = e->cached_bytes;
	trim_cached(e, before - min_u64(before, bytes));
	return e->cached_bytes < before;
}

static bool reclaim_slots(void *arg, uint64_t bytes)
{
	struct engine *e = arg;

	(void)bytes;
	return slots_reclaim(e->slots);
}

void engine_explain_size(const struct engine *e, char *out, size_t size)
{
	const char *advice =
		e->cache ? ": half of cache_size: use a smaller batch, or a larger cache_size"
			 : ": use a smaller batch";

	snprintf(out, size,
		 "a batch has %llu bytes, but at most %llu fit into memory%s",
		 (unsigned long long)atomic_load(&e->refused_bytes),
		 (unsigned long long)e->slot_bytes, advice);
}

static int layout(struct engine *e, const struct batch_key *key, bool afresh,
		  struct batch **out)
{
	char why[ENGINE_WHY_SIZE];
	struct batch *batch;
	int r;

	if (find_cached(e, key, afresh, out))
		return 0;
	r = batch_open(key, e->budget, &batch);
	if (r)
		return r;
	if (batch->vfile.size > e->slot_bytes) {
		atomic_store(&e->refused_bytes, batch->vfile.size);
		engine_explain_size(e, why, sizeof(why));
		log_error(e->log, "%s: %s", dataset_path(key->ds), why);
		batch_put(&batch);
		return -EFBIG;
	}
	keep_layout(e, &batch);
	*out = batch;
	return 0;
}

/*
 * --- collating ---
 */

/* The tally of the batch has counted its waits. */
static void count_collation(struct engine *e, const struct batch *batch,
			    uint64_t ns)
{
	uint64_t wait = counters_get(&batch->tally.n[PAYLOAD_WAIT_NS]);

	wait = min_u64(wait, ns);
	counters_add(&e->collation.items, 1);
	counters_add(&e->collation.bytes, batch->vfile.size);
	counters_add(&e->collation.busy_ns, ns - wait);
	counters_add(&e->collation.input_wait_ns, wait);
	counters_add(&e->collation.times[histogram_bucket(ns)], 1);
}

/* Collates a batch into a slot, or into memory of its reader. */
static int collate_batch(void *arg, const struct batch *batch, void *buf,
			 uint64_t *marks)
{
	struct engine *e = arg;
	int64_t begin = clock_ns();
	bool failed;
	int r;

	plan_fetch(e->plan, batch);
	r = batch_collate(batch, e->team, buf, &failed);
	count_collation(e, batch, (uint64_t)(clock_ns() - begin));
	plan_done(e->plan, batch);
	if (!r)
		*marks = failed ? batch_marks(batch, buf) : 0;
	return r;
}

/* The cache gives way to all other uses of the budget. */
static void resize_cache(void *arg, uint64_t bytes)
{
	struct engine *e = arg;

	cache_set_limit(e->cache, bytes);
	plan_set_room(e->plan, bytes);
}

/* Makes a thread look for slots that no reader wants, after a while. */
static void note_untidy(struct engine *e)
{
	scoped_lock(&e->lock);
	if (!e->is_untidy)
		pthread_cond_signal(&e->queued);
	e->is_untidy = true;
}

static int get_slot(struct engine *e, struct batch *batch, struct slot **out)
{
	int r = slots_get(e->slots, batch, out);

	if (!r)
		plan_shared(e->plan, batch);
	note_untidy(e);
	return r;
}

static void run_layout(struct ticket *t)
{
	struct batch *batch = NULL;
	int r = layout(t->engine, &t->key, true, &batch);

	t->laid_out(t->arg, r, batch);
}

static void run_collation(struct ticket *t, struct trace_track *track)
{
	struct engine *e = t->engine;
	int64_t begin = clock_ns();
	struct slot *slot = NULL;
	uint64_t marks;
	int r;

	if (t->dest.bytes)
		r = collate_batch(e, t->batch, t->dest.bytes, &marks);
	else
		r = get_slot(e, t->batch, &slot);
	if (t->dest.bytes)
		atomic_fetch_add(&e->direct, 1);
	trace_span(track, TRACE_COLLATE, (uint64_t)begin, (uint64_t)clock_ns(),
		   t->key.epoch, t->key.number);
	t->done(t->arg, r, slot);
}

static void run_ticket(struct ticket *t, struct trace_track *track)
{
	if (t->laid_out)
		run_layout(t);
	else
		run_collation(t, track);
}

/* Failures are not reported, because the reader of the batch gets them
   again. */
static void prepare_coming(struct engine *e, const struct coming *c)
{
	const struct batch_key key = { c->ds, &c->spec, c->epoch, c->number };
	struct batch *batch;

	/* The reader may have passed the batch while this work was queued. */
	if (!plan_wants(e->plan, &key) || layout(e, &key, false, &batch))
		return;
	slots_prepare(e->slots, batch);
	batch_put(&batch);
	note_untidy(e);
}

static void ticket_once(struct engine *e, struct lane *lane,
			struct trace_track *track)
{
	struct ticket *t = lane->queue;

	DL_DELETE(lane->queue, t);
	t->state = TICKET_RUNNING;
	lane_enter(&e->lanes, lane);
	rouse(e);
	pthread_mutex_unlock(&e->lock);
	run_ticket(t, track);
	pthread_mutex_lock(&e->lock);
	t->state = TICKET_DONE;
	pthread_cond_broadcast(&e->finished);
	lane_leave(&e->lanes, lane);
}

static void coming_once(struct engine *e, unsigned i)
{
	struct coming coming = e->coming[i];
	struct lane *lane = lane_need(&e->lanes, coming.ds, USER_PREFETCH);

	memmove(&e->coming[i], &e->coming[i + 1],
		(--e->num_coming - i) * sizeof(*e->coming));
	/* If memory is short, the batch is not prefetched. */
	if (!lane)
		return;
	lane_enter(&e->lanes, lane);
	rouse(e);
	pthread_mutex_unlock(&e->lock);
	prepare_coming(e, &coming);
	pthread_mutex_lock(&e->lock);
	lane_leave(&e->lanes, lane);
}

/* Runs one piece of work, first that for which a reader waits. The caller holds
   the lock, which this function releases meanwhile. Returns false if there is
   no work; then it has held the lock throughout. */
static bool work_once(struct engine *e, struct trace_track *track)
{
	struct lane *lane = lanes_next(&e->lanes);
	unsigned i = coming_with_work(e);
	bool has_coming = i < e->num_coming;

	if (lane)
		ticket_once(e, lane, track);
	else if (has_coming)
		coming_once(e, i);
	return lane || has_coming;
}

/* Waits for work, with the lock held. One of the waiting threads frees slots
   that no reader wants after a while. */
static void wait_for_work(struct engine *e)
{
	struct timespec end;
	bool is_left;

	if (!e->is_untidy || e->is_watched) {
		pthread_cond_wait(&e->queued, &e->lock);
		return;
	}
	e->is_watched = true;
	end = clock_in_ms((SLOTS_PATIENCE + 1) * 1000);
	if (pthread_cond_timedwait(&e->queued, &e->lock, &end) == ETIMEDOUT) {
		/* Clear the flag first, because the search may miss slots that
		   are added meanwhile. */
		e->is_untidy = false;
		pthread_mutex_unlock(&e->lock);
		is_left = slots_tidy(e->slots);
		budget_settle(e->budget);
		pthread_mutex_lock(&e->lock);
		e->is_untidy |= is_left;
	}
	e->is_watched = false;
}

static void *work(void *arg)
{
	struct engine *e = arg;
	struct trace_track *track = trace_add(e->trace, "beton engine");

	trace_here(track);
	pthread_mutex_lock(&e->lock);
	while (!e->stopping) {
		if (work_once(e, track))
			continue;
		e->idle++;
		wait_for_work(e);
		e->idle--;
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* --- tickets --- */

static struct batch_key key_of(const struct stream *s, uint64_t number)
{
	return (struct batch_key){ s->ds, &s->spec, s->epoch, number };
}

static bool queue_ticket(struct ticket *t, uint64_t user)
{
	struct engine *e = t->engine;

	scoped_lock(&e->lock);
	t->lane = lane_need(&e->lanes, t->key.ds, user);
	if (!t->lane)
		return false;
	DL_APPEND(t->lane->queue, t);
	rouse(e);
	return true;
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
	if (queue_ticket(t, stream->user))
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

/* Removes the ticket from the queue of the engine. Returns false if it is
   running. */
static bool withdraw(struct ticket *t, bool waits)
{
	struct engine *e = t->engine;

	scoped_lock(&e->lock);
	if (t->state == TICKET_QUEUED) {
		DL_DELETE(t->lane->queue, t);
		lane_drop(&e->lanes, t->lane);
	}
	while (t->state == TICKET_RUNNING && waits)
		pthread_cond_wait(&e->finished, &e->lock);
	return t->state != TICKET_RUNNING;
}

static bool close_ticket(struct ticket **ticket, bool waits)
{
	struct ticket *t = *ticket;

	if (!t)
		return true;
	if (!withdraw(t, waits))
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
	return slots_ready(stream->engine->slots, batch);
}

int stream_slot(struct stream *stream, struct batch *batch, struct slot **out)
{
	return get_slot(stream->engine, batch, out);
}

void stream_leave(struct stream *stream, const struct batch *batch,
		  struct slot_reader *reader)
{
	slots_leave(stream->engine->slots, batch, reader);
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

	return layout(s->engine, &key, afresh, out);
}

bool stream_cached(struct stream *s, uint64_t number, struct batch **out)
{
	const struct batch_key key = key_of(s, number);

	return find_cached(s->engine, &key, true, out);
}

/* The caller holds the lock. */
static bool is_coming(const struct engine *e, const struct coming *c)
{
	for (unsigned i = 0; i < e->num_coming; i++) {
		const struct coming *other = &e->coming[i];

		if (other->number == c->number && other->epoch == c->epoch &&
		    other->ds == c->ds && spec_equal(&other->spec, &c->spec))
			return true;
	}
	return false;
}

void stream_note(struct stream *s, uint64_t number)
{
	const struct batch_key key = key_of(s, number);
	struct plan_next next[PREFETCH_MAX];
	struct engine *e = s->engine;
	unsigned n = plan_note(e->plan, &key, &s->share, next, e->prefetch);

	scoped_lock(&e->lock);
	for (unsigned i = 0; i < n && e->num_coming < COMING_MAX; i++) {
		const struct coming c = { s->ds, s->spec, next[i].epoch,
					  next[i].number };

		if (is_coming(e, &c))
			continue;
		e->coming[e->num_coming++] = c;
		rouse(e);
	}
}

/* --- the engine --- */

/* Returns half of the memory that is available to this process. */
static uint64_t half_of_memory(void)
{
	struct memory memory = { .available = 0 };

	memory_read("", &memory);
	return max_u64(BUDGET_MIN, memory.available / 2);
}

static int open_cache(struct engine *e, const struct engine_options *options)
{
	const struct cache_options cache = {
		.limit = e->choice.cache_size,
		.cold = e->choice.cold_size,
		.next_use = plan_next_use,
		.read_done = plan_read_done,
		.wasted = plan_wasted,
		.arg = e->plan,
	};
	int r;

	if (e->choice.mode != CACHE_PROCESS)
		return 0;
	r = cache_open(&cache, &e->cache);
	for (size_t i = 0; i < options->num_datasets && !r; i++)
		r = cache_add(e->cache, options->datasets[i]);
	if (!r)
		r = budget_take(e->budget, BUDGET_COLD, e->choice.cold_size, 0);
	if (!r)
		budget_set_elastic(e->budget, e->choice.cache_size / CACHE_PART,
				   resize_cache, e);
	return r;
}

static int open_slots(struct engine *e)
{
	const struct slots_options slots = {
		.limit = e->slot_bytes,
		.keep = e->slot_reserve,
		.budget = e->budget,
		.collate = collate_batch,
		.arg = e,
	};

	return slots_open(&slots, &e->slots);
}

static int keep_datasets(struct engine *e, const struct engine_options *o)
{
	e->datasets = calloc(o->num_datasets + 1, sizeof(*e->datasets));
	if (!e->datasets)
		return -ENOMEM;
	for (; e->num_datasets < o->num_datasets; e->num_datasets++)
		e->datasets[e->num_datasets] = o->datasets[e->num_datasets];
	return 0;
}

/* Gives memory to datasets that are verified. */
static int open_verify(struct engine *e)
{
	uint64_t budget = e->choice.mode == CACHE_PROCESS ? e->choice.cache_size
							  : half_of_memory();
	uint64_t share = budget / VERIFY_SHARE / max_u64(1, e->num_datasets);
	uint64_t bytes;
	int r = 0;

	for (size_t i = 0; i < e->num_datasets && !r; i++) {
		bytes = verify_set_memory(e->datasets[i], share);
		r = budget_take(e->budget, BUDGET_VERIFY, bytes, 0);
		e->verify_bytes += r ? 0 : bytes;
	}
	if (r)
		log_error(
			e->log,
			"verify: %zu datasets need over %llu bytes of memory: raise cache_size",
			e->num_datasets, (unsigned long long)budget);
	return r;
}

/* Counts the memory of datasets behind URLs, which were opened before. The
   cache keeps half of its size, because an engine does not open without. */
static void open_remote(struct engine *e)
{
	uint64_t bytes = 0, most = e->choice.cache_size / 2;

	for (size_t i = 0; i < e->num_datasets; i++)
		bytes += dataset_memory(e->datasets[i]);
	if (bytes <= most && !budget_take(e->budget, BUDGET_REMOTE, bytes, 0))
		e->remote_bytes = bytes;
	else
		log_warning(
			e->log,
			"tables of URLs take up to %llu bytes beside a cache of %llu: set cache_size to %llu or more",
			(unsigned long long)bytes,
			(unsigned long long)e->choice.cache_size,
			(unsigned long long)(2 * bytes));
}

/* Chooses the caches, and how much memory this process may use. */
static int open_budget(struct engine *e, const struct engine_options *o)
{
	uint64_t bytes = half_of_memory();

	e->choice = o->choice;
	if (e->choice.mode == CACHE_OS &&
	    cache_has_remote(o->datasets, o->num_datasets)) {
		log_error(
			e->log,
			"cache=os: the kernel caches files, and no URLs: use cache=process or cache=auto");
		return -EINVAL;
	}
	cache_choose(&e->choice, o->datasets, o->num_datasets, e->why);
	if (e->choice.mode == CACHE_PROCESS)
		bytes = e->choice.cache_size;
	/* The rest that is no whole piece of memory cannot be used. */
	e->slot_bytes = bytes / SLOTS_PART & ~(uint64_t)(POOL_ALIGN - 1);
	e->slot_reserve = o->slot_bytes;
	if (!e->slot_reserve)
		e->slot_reserve = e->choice.mode == CACHE_PROCESS
					  ? e->slot_bytes
					  : SLOT_RESERVE;
	return budget_open(bytes + e->choice.cold_size, e->log, &e->budget);
}

int engine_open(const struct engine_options *options, struct engine **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->log = options->log;
	e->trace = options->trace;
	e->helpers = options->helpers;
	e->lanes.width = options->threads ? options->threads : THREADS_DEFAULT;
	e->prefetch = (unsigned)min_u64(options->prefetch, PREFETCH_MAX);
	pthread_mutex_init(&e->lock, NULL);
	clock_cond_init(&e->queued);
	pthread_cond_init(&e->finished, NULL);
	r = open_budget(e, options);
	if (!r)
		r = keep_datasets(e, options);
	if (!r)
		r = open_verify(e);
	if (!r)
		open_remote(e);
	if (!r)
		r = plan_open(max_u64(READ_AHEAD_MIN,
				      min_u64(READ_AHEAD_MAX,
					      e->choice.cache_size / 8)),
			      &e->plan);
	if (!r)
		r = open_slots(e);
	if (!r)
		r = open_cache(e, options);
	budget_add_reclaimer(e->budget, reclaim_layouts, e);
	budget_add_reclaimer(e->budget, reclaim_slots, e);
	if (r)
		engine_close(e);
	else
		*out = e;
	return r;
}

static int start_threads(struct engine *e)
{
	int r = 0;

	e->max_threads = e->lanes.width + ENGINE_THREADS_MORE;
	e->threads = calloc(e->max_threads, sizeof(*e->threads));
	if (!e->threads)
		return -ENOMEM;
	scoped_lock(&e->lock);
	for (; e->num_threads < e->lanes.width && !r; e->num_threads += !r)
		r = thread_start(&e->threads[e->num_threads], work, e);
	return r;
}

int engine_start(struct engine *e)
{
	int r = 0;

	if (e->cache)
		r = plan_start(e->plan, e->cache, e->choice.cache_size);
	if (!r && e->helpers)
		r = team_open(e->helpers, &e->team);
	return r ? r : start_threads(e);
}

void engine_stop(struct engine *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stopping = true;
	pthread_cond_broadcast(&e->queued);
	pthread_mutex_unlock(&e->lock);
	for (; e->num_threads; e->num_threads--)
		pthread_join(e->threads[e->num_threads - 1], NULL);
	team_close(steal(e->team));
	if (e->plan)
		plan_stop(e->plan);
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	engine_stop(e);
	slots_close(e->slots);
	cache_close(e->cache);
	plan_close(e->plan);
	for (size_t i = 0; i < LAYOUTS_MAX; i++)
		batch_put(&e->cached[i]);
	budget_give(e->budget, BUDGET_VERIFY, e->verify_bytes);
	budget_give(e->budget, BUDGET_REMOTE, e->remote_bytes);
	budget_close(e->budget);
	pthread_cond_destroy(&e->finished);
	pthread_cond_destroy(&e->queued);
	pthread_mutex_destroy(&e->lock);
	free(e->threads);
	free(e->datasets);
	free(e);
}

struct dataset *const *engine_datasets(const struct engine *e, size_t *n)
{
	*n = e->num_datasets;
	return e->datasets;
}

const struct cache_choice *engine_choice(const struct engine *e)
{
	return &e->choice;
}

const char *engine_tiers_why(const struct engine *e)
{
	return e->why;
}

struct budget *engine_budget(const struct engine *e)
{
	return e->budget;
}

void engine_budget_stats(struct engine *e, struct budget_stats *out)
{
	struct cache_stats cache = { .used_bytes = 0 };

	if (e->cache)
		cache_stats(e->cache, &cache);
	budget_stats(e->budget, out);
	out->used[BUDGET_CACHE] = cache.used_bytes;
	out->used[BUDGET_COLD] = cache.cold_used_bytes;
}

uint64_t engine_shareable(const struct engine *e)
{
	return min_u64(e->slot_bytes / 2, SLOT_RESERVE);
}

static void stage_stats(struct engine *e, struct engine_stats *out)
{
	struct counters_sum *s = out->stages;

	for (size_t i = 0; i < e->num_datasets; i++)
		counters_sum(&s[ENGINE_SOURCE],
			     source_reads(e->datasets[i]->source));
	if (e->cache)
		counters_sum(&s[ENGINE_CACHE], cache_waits(e->cache));
	s[ENGINE_CACHE].items =
		out->cache.hits + out->cache.stalled + out->cache.misses;
	s[ENGINE_CACHE].bytes = out->cache.delivered_bytes;
	counters_sum(&s[ENGINE_COLLATION], &e->collation);
	s[ENGINE_COLLATION].room_wait_ns = out->slots.wait_ns;
}

void engine_stats(struct engine *e, struct engine_stats *out)
{
	struct verify_stats verify;

	*out = (struct engine_stats){ 0 };
	out->direct = atomic_load(&e->direct);
	slots_stats(e->slots, &out->slots);
	if (e->cache)
		cache_stats(e->cache, &out->cache);
	stage_stats(e, out);
	for (size_t i = 0; i < e->num_datasets; i++) {
		verify_stats(e->datasets[i], &verify);
		out->verify.bytes += verify.bytes;
		out->verify.bad_blocks += verify.bad_blocks;
	}
}

size_t engine_readers(struct engine *e, struct plan_reader *out, size_t max)
{
	return plan_readers(e->plan, out, max);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/plan.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/horizon.h"

enum {
	/* Samples of one reader that are examined in a row. */
	STRETCH = 16,
	/* Samples of one reader whose records are requested together, at most:
	   more than a network has in flight. */
	RECORDS_AHEAD = 128,
	/* Concurrent reads for waiting readers. Each needs memory of its own,
	   and a batch may have millions of samples. */
	READS_MAX = 256,
};

/* The weight of the last samples in the average part that is missing. */
static const double missing_weight = 1. / 8;

struct plan {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	pthread_cond_t read;	/* a read has ended */
	struct readers readers; /* its cache and room: no lock */
	bool stopping;
	bool has_thread;
	pthread_t thread;
};

/* Without a cache, a prefetched batch is all that would be read. */
static bool may_prefetch(const struct plan *p, const struct reader *r,
			 unsigned k, uint64_t number)
{
	return !k || !p->readers.cache ||
	       r->samples + (number + 1) * r->spec.batch <= horizon_end(r);
}

unsigned plan_note(struct plan *p, const struct batch_key *key,
		   const struct batch_share *share, struct plan_next *next,
		   unsigned max)
{
	uint64_t number = key->number;
	int64_t now = clock_ns();
	struct reader *r;
	unsigned k, n = 0;

	scoped_lock(&p->lock);
	readers_forget(&p->readers, now);
	r = readers_find(&p->readers, key);
	if (!r)
		r = readers_add(&p->readers, key);
	reader_advance(r, key, share);
	r->last_ns = now;
	r->is_blocked = false;
	readers_note_silent(&p->readers, now);
	readers_keep_level(&p->readers, r);
	r->trusted = readers_place(r) + horizon_trust(r) * r->weight;
	k = key->epoch > r->epoch;
	while (key->epoch >= r->epoch && n < max &&
	       reader_next(r, &k, &number) && may_prefetch(p, r, k, number))
		next[n++] = (struct plan_next){ r->epoch + k, number };
	pthread_cond_signal(&p->changed);
	return n;
}

void plan_read_done(void *plan, uint64_t reader, uint64_t bytes)
{
	struct plan *p = plan;
	struct reader *r;

	scoped_lock(&p->lock);
	r = readers_find_id(&p->readers, reader);
	if (r) {
		r->counts.reads++;
		r->counts.read_bytes += bytes;
	}
	pthread_cond_signal(&p->changed);
	pthread_cond_broadcast(&p->read);
}

void plan_wasted(void *plan, uint64_t reader, uint64_t bytes)
{
	struct plan *p = plan;
	struct reader *r;

	scoped_lock(&p->lock);
	r = readers_find_id(&p->readers, reader);
	if (r)
		r->counts.wasted_bytes += bytes;
}

/*
 * --- callbacks of the cache ---
 */

uint64_t plan_next_use(void *plan, const struct cache_file *file,
		       uint64_t chunk)
{
	struct plan *p = plan;

	scoped_lock(&p->lock);
	return readers_chunk_next_use(&p->readers, file, chunk);
}

/* --- reading; without the lock --- */

static struct cache_file *file_of(const struct dataset *ds)
{
	return (struct cache_file *)ds->payloads;
}

/* A sample to read, and the horizon from there on. */
struct wish {
	struct cache_file *file;
	const struct order *order;
	uint64_t sample;
	bool must;
	uint64_t reader;  /* its id */
	uint64_t horizon; /* chunks needed later than that can wait */
};

/* Returns the chunks that the order uses together with the sample's chunk: a
   read of the size that is best for the source. */
static void run_of(const struct wish *w, uint64_t *first, uint64_t *end)
{
	const struct dataset *ds = w->file->ds;
	uint64_t mean = max_u64(1, dataset_data_bytes(ds) / ds->format.samples);
	uint64_t max = max_u64(1, source_best_read(ds->source) /
					  (mean * w->file->per));
	uint64_t chunk = w->sample / w->file->per, a, b;

	order_run(w->order, w->sample, &a, &b);
	a /= w->file->per;
	b = (b + w->file->per - 1) / w->file->per;
	max = min_u64(max, CACHE_RUN);
	*first = a + (chunk - a) / max * max;
	*end = min_u64(b, *first + max);
}

static bool chunk_is_due(struct plan *p, const struct wish *w, uint64_t chunk)
{
	scoped_lock(&p->lock);
	return readers_chunk_is_due(&p->readers, w->file, chunk, w->reader,
				    w->horizon);
}

/* Fetches the sample's chunk, and those chunks of its run that are needed soon.
 */
static int fetch_run(struct plan *p, const struct wish *w)
{
	uint64_t chunk = w->sample / w->file->per, first, end;
	struct cache_want want = {
		.must = w->must ? chunk : CACHE_NEVER,
		.owner = w->reader,
	};
	int r = 0, result = 0;
	bool wanted;

	run_of(w, &first, &end);
	want.first = first;
	for (uint64_t i = first; i <= end; i++) {
		wanted = i < end &&
			 ((w->must && i == chunk) || chunk_is_due(p, w, i));
		if (wanted)
			continue;
		want.end = i;
		if (i > want.first)
			r = cache_fetch(w->file, &want);
		result = r ? r : result;
		want.first = i + 1;
	}
	return result;
}

static void wait_for_reads(struct plan *p, const struct cache *cache)
{
	scoped_lock(&p->lock);
	while (cache_reads(cache) >= READS_MAX)
		pthread_cond_wait(&p->read, &p->lock);
}

static void note_requested(struct plan *p, uint64_t id)
{
	struct reader *r;

	scoped_lock(&p->lock);
	r = readers_find_id(&p->readers, id);
	if (!r || r->is_requested)
		return;
	r->is_requested = true;
	pthread_cond_signal(&p->changed);
}

void plan_fetch(struct plan *p, const struct batch *batch)
{
	const struct batch_key *key = &batch->key;
	struct cache_file *file = file_of(key->ds);
	struct order order;
	struct wish wish = { .file = file, .order = &order, .must = true };
	struct reader *r;

	if (!file)
		return;
	order = order_init(key->spec, key->epoch);
	pthread_mutex_lock(&p->lock);
	r = readers_find_stream(&p->readers, key);
	wish.horizon = r ? horizon_for_batch(&p->readers, r, key) : 0;
	r = readers_find_served(&p->readers, key);
	wish.reader = r ? r->id : 0;
	pthread_mutex_unlock(&p->lock);
	atomic_store(&batch->vfile.tally->owner, wish.reader);
	for (uint32_t i = 0; i < batch->samples; i++) {
		wish.sample = batch->ids[i];
		if (cache_has(file, wish.sample / file->per))
			continue;
		wait_for_reads(p, file->cache);
		fetch_run(p, &wish);
	}
	note_requested(p, wish.reader);
}

bool plan_wants(struct plan *p, const struct batch_key *key)
{
	scoped_lock(&p->lock);
	for (size_t i = 0; i < p->readers.num; i++) {
		if (reader_wants(&p->readers.list[i], key))
			return true;
	}
	return false;
}

/* Updates the readers that have opened the batch. Returns whether one of them
   needed it until now. */
static bool opened_done(struct plan *p, const struct batch_key *key)
{
	bool changed = false;

	for (size_t i = 0; i < p->readers.num; i++) {
		if (reader_opened(&p->readers.list[i], key))
			changed |= reader_done(&p->readers.list[i], key);
	}
	return changed;
}

/* If the batch was prefetched, it was for the reader that opens it first. Later
   readers may find it recycled and cause it to be collated again. */
static void next_done(struct plan *p, const struct batch_key *key)
{
	struct reader *next = readers_find_next(&p->readers, key);

	if (next)
		reader_done(next, key);
}

static void let_go(struct plan *p, const struct batch *batch)
{
	struct cache_file *file = file_of(batch->key.ds);

	for (uint32_t i = 0; file && i < batch->samples; i++)
		cache_touch(file, batch->ids[i] / file->per);
	scoped_lock(&p->lock);
	for (size_t i = 0; i < p->readers.num; i++)
		p->readers.list[i].is_blocked = false;
	pthread_cond_signal(&p->changed);
}

static void count(struct plan *p, const struct batch *batch)
{
	struct reader *r = readers_find_served(&p->readers, &batch->key);
	struct cache_counts nobodys = { .hits = 0 };

	cache_count(r ? &r->counts : &nobodys, batch->vfile.tally);
}

void plan_done(struct plan *p, const struct batch *batch)
{
	pthread_mutex_lock(&p->lock);
	count(p, batch);
	if (!opened_done(p, &batch->key))
		next_done(p, &batch->key);
	pthread_mutex_unlock(&p->lock);
	let_go(p, batch);
}

void plan_shared(struct plan *p, const struct batch *batch)
{
	bool changed;

	pthread_mutex_lock(&p->lock);
	changed = opened_done(p, &batch->key);
	pthread_mutex_unlock(&p->lock);
	if (changed)
		let_go(p, batch);
}

/* --- the thread that reads ahead --- */

/* The next samples of a reader, in its order. */
struct stretch {
	uint64_t reader; /* its id */
	struct cache_file *file;
	struct order order;
	uint64_t horizon;
	uint64_t from; /* its `ahead` before and after */
	uint64_t to;
	uint64_t samples[STRETCH];
	unsigned n;
	unsigned missing; /* of them */
	/* Samples whose records are requested first. */
	uint64_t near[RECORDS_AHEAD];
	unsigned num_near;
};

/* Returns whether enough reads of a dataset are under way. */
static bool is_busy(const struct plan *p, const struct cache_file *file)
{
	unsigned reads = cache_file_reads(file);

	return reads >= source_depth(file->ds->source) ||
	       (reads && cache_reading(p->readers.cache) >=
				 p->readers.room / HORIZON_SPARE);
}

/* Whether reading ahead would delay the reader's first batch. A remote source
   serves urgent requests first, so that other ones fill the link as soon as all
   of these are under way. */
static bool waits_for_first(const struct reader *r)
{
	return reader_begins(r) &&
	       !(r->is_requested && source_prefetches(r->ds->source));
}

/* Returns the number of samples that may be read ahead for a reader; 0: it has
   enough. */
static uint64_t room_ahead(const struct plan *p, const struct reader *r,
			   int64_t now)
{
	uint64_t top = min_u64(r->samples, (r->top + 1) * r->spec.batch);
	uint64_t reach = horizon_reach(&p->readers, r);
	uint64_t end;

	/* Enough for the link. If several nodes read more, their packets wait
	   for 0.2 s behind each other, and the server sends them again. */
	if (reader_begins(r))
		reach = min_u64(reach, reader_step(r) * r->spec.batch);
	end = min_u64(top + reach, horizon_end(r));
	if (r->is_blocked || !reader_step(r) || waits_for_first(r) ||
	    !file_of(r->ds) || readers_is_silent(r, now))
		return 0;
	return end - min_u64(end, r->ahead);
}

/* Returns the reader that has the least read ahead. */
static struct reader *choose_reader(struct plan *p)
{
	struct reader *best = NULL, *r = p->readers.list;
	uint64_t most = 0, room;
	int64_t now = clock_ns();

	for (size_t i = 0; i < p->readers.num; i++, r++) {
		room = room_ahead(p, r, now);
		if (room && !is_busy(p, file_of(r->ds)) &&
		    (!best || room * r->weight > most)) {
			best = r;
			most = room * r->weight;
		}
	}
	return best;
}

/* Takes up to `max` samples that a reader awaits, from position *at of epoch k
   on. Sets *at to the position after them, at most `end`. */
static unsigned take_samples(const struct reader *r, unsigned k, uint64_t *at,
			     uint64_t end, uint64_t *samples, unsigned max)
{
	uint64_t start = k ? r->samples : 0, number;
	unsigned n = 0;

	while (*at < end && n < max) {
		number = (*at - start) / r->spec.batch;
		if (!reader_awaits(r, k, number)) {
			*at = min_u64(end,
				      start + (number + 1) * r->spec.batch);
			continue;
		}
		samples[n++] = order_sample(&r->orders[k], *at - start);
		++*at;
	}
	return n;
}

/* Takes the samples whose records a remote source should request now, so that
   their number does not limit how many reads are under way. */
static void take_near(struct reader *r, unsigned k, uint64_t end,
		      struct stretch *c)
{
	uint64_t depth = source_depth(r->ds->source);
	unsigned most =
		(unsigned)min_u64(max_u64(STRETCH, 2 * depth), RECORDS_AHEAD);

	c->num_near = 0;
	if (!source_prefetches(r->ds->source) || r->records >= c->to)
		return;
	r->records = max_u64(r->records, r->ahead);
	c->num_near = take_samples(r, k, &r->records, end, c->near, most);
}

/* Takes the next samples of a reader's future, all of one epoch. */
static void take_stretch(const struct plan *p, struct reader *r,
			 struct stretch *c)
{
	unsigned k = r->ahead >= r->samples;
	uint64_t start = k ? r->samples : 0;
	uint64_t end = min_u64(start + r->samples,
			       r->ahead + room_ahead(p, r, r->last_ns));

	c->reader = r->id;
	c->file = file_of(r->ds);
	c->order = r->orders[k];
	c->horizon = horizon_now(&p->readers, r);
	c->from = r->ahead;
	c->to = r->ahead;
	c->n = take_samples(r, k, &c->to, end, c->samples, STRETCH);
	c->missing = 0;
	take_near(r, k, end, c);
}

enum outcome {
	READ_ALL,
	READ_BUSY, /* enough reads are under way */
	READ_FULL, /* of chunks that are needed sooner */
};

static enum outcome read_stretch(struct plan *p, struct stretch *c)
{
	struct wish w = {
		.file = c->file,
		.order = &c->order,
		.reader = c->reader,
		.horizon = c->horizon,
	};

	dataset_prefetch(c->file->ds, c->near, c->num_near);
	/* Those that had to leave memory meanwhile. */
	dataset_prefetch(c->file->ds, c->samples, c->n);
	for (unsigned i = 0; i < c->n; i++) {
		w.sample = c->samples[i];
		if (cache_has(w.file, w.sample / w.file->per))
			continue;
		c->missing++;
		if (is_busy(p, w.file))
			return READ_BUSY;
		/* If a run finds no room, this is no failure. Meanwhile the
		   batch may be collated, so that no reader needs the chunks any
		   more. */
		if (fetch_run(p, &w) &&
		    !cache_has(w.file, w.sample / w.file->per))
			return READ_FULL;
	}
	return READ_ALL;
}

/* The reader may be closed, or at another position, by now. The caller holds
   the lock. */
static void note_stretch(struct plan *p, const struct stretch *c,
			 enum outcome outcome)
{
	struct reader *r = p->readers.list;

	for (size_t i = 0; i < p->readers.num; i++, r++) {
		if (r->id != c->reader || r->ahead != c->from)
			continue;
		if (outcome == READ_ALL)
			r->ahead = c->to;
		if (outcome == READ_ALL && c->n)
			r->missing += ((double)c->missing / c->n - r->missing) *
				      missing_weight;
		r->is_blocked = outcome == READ_FULL;
	}
}

static void *read_ahead(void *arg)
{
	struct plan *p = arg;
	struct stretch stretch;
	struct reader *r;
	enum outcome outcome;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		r = choose_reader(p);
		if (!r) {
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		take_stretch(p, r, &stretch);
		pthread_mutex_unlock(&p->lock);
		outcome = read_stretch(p, &stretch);
		pthread_mutex_lock(&p->lock);
		note_stretch(p, &stretch, outcome);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* --- opening and closing --- */

int plan_open(uint64_t ahead, struct plan **out)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->readers.ahead = ahead;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	pthread_cond_init(&p->read, NULL);
	*out = p;
	return 0;
}

int plan_start(struct plan *p, struct cache *cache, uint64_t room)
{
	int r;

	p->readers.cache = cache;
	p->readers.room = room;
	r = thread_start(&p->thread, read_ahead, p);
	p->has_thread = !r;
	return r;
}

void plan_set_room(struct plan *p, uint64_t room)
{
	p->readers.room = room;
}

void plan_stop(struct plan *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (p->has_thread)
		pthread_join(p->thread, NULL);
	p->has_thread = false;
}

void plan_close(struct plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->readers.num; i++)
		reader_fini(&p->readers.list[i]);
	pthread_cond_destroy(&p->read);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

size_t plan_readers(struct plan *p, struct plan_reader *out, size_t max)
{
	int64_t now = clock_ns();

	scoped_lock(&p->lock);
	for (size_t i = 0; i < p->readers.num && i < max; i++) {
		const struct reader *r = &p->readers.list[i];

		out[i] = (struct plan_reader){
			.ds = r->ds,
			.spec = r->spec,
			.epoch = r->epoch,
			.number = r->top,
			.stride = reader_step(r),
			.opened = r->opened,
			.idle_ns = (uint64_t)(now - r->last_ns),
			.counts = r->counts,
		};
	}
	return p->readers.num;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/plan.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/data/cache/arena.h"
#include "fs/data/engine/reader.h"

enum {
	READERS_MAX = 64,
	/* Samples of one reader that are examined in a row. */
	STRETCH = 16,
	/* Samples of one reader whose records are requested together, at most:
	   more than a network has in flight. */
	RECORDS_AHEAD = 128,
	/* Samples of a chunk whose next use is looked up. If there were more,
	   one of them would always be near. */
	LOOKED_AT = 16,
	/* A reader that lags behind the others by this part of an epoch is put
	   level with them again. */
	DRIFT = 16,
	/* In its first epoch, a reader may be one that reads no other. Until it
	   has begun the second, the plan reads at most this part of it. */
	BEGINNING = 512,
	/* A reader that has opened half as many batches is read ahead without
	   bounds. */
	TRUST_MAX = 30,
	/* Readers that have opened so few batches may open no more. */
	FEW = 2,
	/* Concurrent reads for waiting readers. Each needs memory of its own,
	   and a batch may have millions of samples. */
	READS_MAX = 256,
	/* Without windows, a reader is read ahead by this part of its share, or
	   of half of it. The rest keeps samples of the next epoch. */
	AHEAD = 4,
	/* The part of the cache that the plan leaves free: 1/8. Unfinished
	   reads may have as much. */
	SPARE = 8,
};

/*
 * If a reader opens no batch for this time, reading ahead stops for it. Then it
 * has no share of the cache, and its needs count as later than all needs of
 * other readers. The evaluation of a trainer takes minutes. After it, only the
 * next batches of the trainer have to be read again.
 */
static const int64_t idle_ns = 10 * 1000000000LL;
/* More bytes than are ever read. */
static const uint64_t silent_later = UINT64_MAX / 2;
static const int64_t forget_ns = 120 * 1000000000LL;

/* The part of examined samples that is missing: the least that counts, and the
   weight of the last samples in the average. */
static const double missing_least = 1. / 16;
static const double missing_weight = 1. / 8;

struct plan {
	struct cache *cache;
	uint64_t ahead;
	_Atomic uint64_t room; /* bytes of the cache */
	pthread_mutex_t lock;  /* guards the members below */
	pthread_cond_t changed;
	pthread_cond_t read; /* a read has ended */
	struct reader readers[READERS_MAX];
	size_t num_readers;
	uint64_t ids;
	uint64_t clock; /* bytes: position of the foremost reader */
	bool stopping;
	bool has_thread;
	pthread_t thread;
};

/* --- readers; all with the lock held --- */

/* The reader's progress, in the unit that all readers share. */
static uint64_t place_of(const struct reader *r)
{
	return r->base + reader_position(r) * r->weight;
}

static void rekey(struct plan *p)
{
	if (p->cache)
		cache_rekey(p->cache);
}

static bool is_silent(const struct reader *r, int64_t now)
{
	return now - r->last_ns > idle_ns;
}

/* Returns whether two jobs of one spec use the same samples at about the same
   time. */
static bool is_beside(const struct reader *a, const struct reader *b)
{
	uint64_t near = max_u64(a->spec.window, READER_LAG * a->spec.batch);
	uint64_t at = a->top * a->spec.batch, other = b->top * a->spec.batch;

	return a->ds == b->ds && a->epoch == b->epoch &&
	       max_u64(at, other) - min_u64(at, other) <= near &&
	       spec_equal(&a->spec, &b->spec);
}

/* Returns the number of readers that share the cache with this one, with those
   beside it or without. The loader of a mount opens one small batch to learn
   about the fields; such a reader needs no share. */
static uint64_t count_sharing(const struct plan *p, const struct reader *with,
			      bool beside)
{
	const struct reader *r = p->readers;
	uint64_t n = 1;

	for (size_t i = 0; i < p->num_readers; i++, r++)
		n += r != with && !r->is_silent && r->opened > FEW &&
		     (beside || !is_beside(r, with));
	return n;
}

static void note_silent(struct plan *p, int64_t now)
{
	struct reader *r = p->readers;
	bool changed = false;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
		changed |= r->is_silent != is_silent(r, now);
		r->is_silent = is_silent(r, now);
	}
	if (changed)
		rekey(p);
}

static void forget(struct plan *p, int64_t now)
{
	for (size_t i = 0; i < p->num_readers;) {
		if (now - p->readers[i].last_ns <= forget_ns) {
			i++;
			continue;
		}
		reader_fini(&p->readers[i]);
		p->readers[i] = p->readers[--p->num_readers];
		rekey(p);
	}
}

/* Returns the reader that opens this batch. If two jobs have the same spec, it
   is the one in the batch's epoch; at the start of an epoch, the nearer one. */
static struct reader *find_reader(struct plan *p, const struct batch_key *key)
{
	struct reader *best = NULL, *r = p->readers;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
		if (!reader_matches(r, key))
			continue;
		if (r->epoch == key->epoch)
			return r;
		if (!best || r->top > best->top)
			best = r;
	}
	return best;
}

/* Returns any reader of this sequence. */
static struct reader *find_stream(struct plan *p, const struct batch_key *key)
{
	for (size_t i = 0; i < p->num_readers; i++) {
		if (p->readers[i].ds == key->ds &&
		    spec_equal(&p->readers[i].spec, key->spec))
			return &p->readers[i];
	}
	return NULL;
}

/* NULL: the reader is gone. */
static struct reader *find_id(struct plan *p, uint64_t id)
{
	for (size_t i = 0; i < p->num_readers; i++) {
		if (p->readers[i].id == id)
			return &p->readers[i];
	}
	return NULL;
}

/* Returns the reader that will open the batch first, among those that have not
   opened it yet. */
static struct reader *find_next(struct plan *p, const struct batch_key *key)
{
	struct reader *next = NULL, *r = p->readers;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
		if (r->epoch == key->epoch && reader_wants(r, key) &&
		    (!next || r->top > next->top))
			next = r;
	}
	return next;
}

/* Returns the reader for which a batch is collated, or NULL if the plan cannot
   determine it. */
static struct reader *find_served(struct plan *p, const struct batch_key *key)
{
	struct reader *next = find_next(p, key);

	for (size_t i = 0; i < p->num_readers; i++) {
		if (reader_opened(&p->readers[i], key))
			return &p->readers[i];
	}
	return next ? next : find_stream(p, key);
}

/* Adds a reader, level with the foremost. If there are too many, it replaces
   the one that has been silent for longest. */
static struct reader *add_reader(struct plan *p, const struct batch_key *key)
{
	struct reader *r = &p->readers[0];

	for (size_t i = 1; i < p->num_readers; i++) {
		if (p->readers[i].last_ns < r->last_ns)
			r = &p->readers[i];
	}
	if (p->num_readers < READERS_MAX)
		r = &p->readers[p->num_readers++];
	else
		reader_fini(r);
	reader_init(r, key);
	r->id = ++p->ids;
	r->base = p->clock - min_u64(p->clock, reader_position(r) * r->weight);
	rekey(p);
	return r;
}

/* Advances the common clock, or brings a reader that fell behind back to it. */
static void keep_level(struct plan *p, struct reader *r)
{
	uint64_t place = place_of(r);

	if (place >= p->clock) {
		p->clock = place;
	} else if (p->clock - place > r->samples * r->weight / DRIFT) {
		r->base += p->clock - place;
		rekey(p);
	}
}

/* Returns the most positions to read ahead of a reader, because one that has
   opened few batches may open no more: four times as many per batch. */
static uint64_t trust_in(const struct reader *r)
{
	uint64_t batches = (uint64_t)1 << min_u64(2 * r->opened, TRUST_MAX);

	return batches * r->spec.batch * max_u64(1, reader_step(r));
}

/* Returns the number of positions of this epoch and the next that may be read
   for a reader. */
static uint64_t end_of(const struct reader *r)
{
	return r->passed ? 2 * r->samples : r->samples + r->samples / BEGINNING;
}

/* Without a cache, a prefetched batch is all that would be read. */
static bool may_prefetch(const struct plan *p, const struct reader *r,
			 unsigned k, uint64_t number)
{
	return !k || !p->cache ||
	       r->samples + (number + 1) * r->spec.batch <= end_of(r);
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
	forget(p, now);
	r = find_reader(p, key);
	if (!r)
		r = add_reader(p, key);
	reader_advance(r, key, share);
	r->last_ns = now;
	r->is_blocked = false;
	note_silent(p, now);
	keep_level(p, r);
	r->trusted = place_of(r) + trust_in(r) * r->weight;
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
	r = find_id(p, reader);
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
	r = find_id(p, reader);
	if (r)
		r->counts.wasted_bytes += bytes;
}

/*
 * --- callbacks of the cache ---
 */

static uint64_t next_use_of(const struct reader *r, uint64_t sample)
{
	uint64_t use = reader_next_use(r, sample);

	if (use == READER_NEVER)
		return CACHE_NEVER;
	use = r->base + use * r->weight;
	return r->is_silent ? use + silent_later : use;
}

static uint64_t sample_next_use(const struct plan *p, const struct dataset *ds,
				uint64_t sample)
{
	const struct reader *r = p->readers;
	uint64_t best = CACHE_NEVER;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
		if (r->ds == ds)
			best = min_u64(best, next_use_of(r, sample));
	}
	return best;
}

/* The samples of a chunk that are examined: from `first` on, in steps. */
struct looked_at {
	uint64_t first;
	uint64_t end;
	uint64_t step;
};

static struct looked_at look_at(const struct cache_file *file, uint64_t chunk)
{
	uint64_t first = chunk * file->per;
	uint64_t end = min_u64(first + file->per, file->ds->format.samples);

	return (struct looked_at){ first, end,
				   (end - first + LOOKED_AT - 1) / LOOKED_AT };
}

/* Never 0, which means a chunk that a reader waits for. */
static uint64_t chunk_next_use(const struct plan *p,
			       const struct cache_file *file, uint64_t chunk)
{
	const struct looked_at at = look_at(file, chunk);
	uint64_t best = CACHE_NEVER;

	for (uint64_t i = at.first; i < at.end; i += at.step)
		best = min_u64(best, sample_next_use(p, file->ds, i));
	return max_u64(best, 1);
}

uint64_t plan_next_use(void *plan, const struct cache_file *file,
		       uint64_t chunk)
{
	struct plan *p = plan;

	scoped_lock(&p->lock);
	return chunk_next_use(p, file, chunk);
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

/* Returns whether a reader needs a sample up to the horizon. Only the next
   batches of other readers count, as many as they are likely to open. */
static bool sample_is_due(const struct plan *p, const struct wish *w,
			  uint64_t sample)
{
	const struct reader *r = p->readers;
	uint64_t horizon;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
		if (r->ds != w->file->ds)
			continue;
		horizon = r->id == w->reader ? w->horizon
					     : min_u64(w->horizon, r->trusted);
		if (next_use_of(r, sample) <= horizon)
			return true;
	}
	return false;
}

static bool chunk_is_due(struct plan *p, const struct wish *w, uint64_t chunk)
{
	const struct looked_at at = look_at(w->file, chunk);

	scoped_lock(&p->lock);
	for (uint64_t i = at.first; i < at.end; i += at.step) {
		if (sample_is_due(p, w, i))
			return true;
	}
	return false;
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

/* Returns the number of positions whose samples fit into a part of the cache
   for so many readers. Another part is left for batches that are being
   collated. A rank needs one in so many positions. */
static uint64_t share_of(const struct plan *p, const struct reader *r,
			 uint64_t readers)
{
	/* Values begin and end within pages. */
	uint64_t samples = (p->room - p->room / SPARE) / readers /
			   (r->weight + ARENA_FRAME);

	return samples * max_u64(1, reader_step(r));
}

static double missing_of(const struct reader *r)
{
	return r->missing > missing_least ? r->missing : missing_least;
}

/* Returns whether reads take so long that many must be in flight. */
static bool is_far(const struct source *source)
{
	return source_prefetches(source) || source_depth(source) > SOURCE_DEPTH;
}

/*
 * Returns the positions to read ahead that keep a slow source busy. Samples
 * that the cache has need neither requests nor room. But if the window fits, it
 * has to fit beyond these positions, too; otherwise its blocks would be read in
 * pieces. For local files, a batch is enough.
 */
static uint64_t least_reach(const struct reader *r, uint64_t share,
			    uint64_t taken, uint64_t readers)
{
	const struct source *source = r->ds->source;
	uint64_t step = max_u64(1, reader_step(r)), depth, deep;

	if (!is_far(source))
		return 0;
	depth = step * source_depth(source) / readers;
	depth = min_u64(share / 4, depth);
	deep = (uint64_t)((double)depth / missing_of(r));
	return share < taken ? deep
			     : max_u64(depth, min_u64(deep, share - taken));
}

/*
 * Returns the number of positions to read ahead of a reader. Reading a sample
 * reads its whole run, which is used within a window. Therefore the run must
 * find room as well; otherwise it would be read twice.
 */
static uint64_t reach_of(const struct plan *p, const struct reader *r)
{
	uint64_t readers = count_sharing(p, r, true), room;
	uint64_t step = max_u64(1, reader_step(r));
	uint64_t share = share_of(p, r, readers);
	uint64_t want = r->spec.window + p->ahead / r->weight * step;
	uint64_t taken = r->spec.window + 2 * r->spec.batch;
	/* A late answer of a server must not stop all readers. */
	uint64_t part = is_far(r->ds->source) ? share : share / 2;

	if (r->spec.window)
		room = part - min_u64(part, taken);
	else
		room = part / AHEAD;
	room = max_u64(room, least_reach(r, share, taken, readers));
	/* The order has not determined later samples yet. */
	if (r->spec.draws)
		want = min_u64(want, DRAWS_POSITIONS / 2);
	want = min_u64(min_u64(want, room), trust_in(r));
	return max_u64(r->spec.batch, want);
}

/* Returns the horizon of a reader: chunks that are needed later can wait. */
static uint64_t horizon_of(const struct plan *p, const struct reader *r)
{
	uint64_t end =
		r->base + r->weight * (r->passed * r->samples + end_of(r));
	uint64_t far = reach_of(p, r) + r->spec.window;
	uint64_t share = share_of(p, r, count_sharing(p, r, false));

	/* Jobs beside each other use one window, but if it does not fit, the
	   room keeps what those behind will use. */
	if (share <= r->spec.window)
		share = share_of(p, r, count_sharing(p, r, true));
	return min_u64(end, place_of(r) + r->weight * min_u64(far, share));
}

/*
 * Returns the horizon for the reader of a batch. For its first batch, it is
 * that batch: the reader may be one of many ranks, and other reads would delay
 * it.
 */
static uint64_t horizon_for(const struct plan *p, const struct reader *r,
			    const struct batch_key *key)
{
	if (!reader_step(r) || (reader_begins(r) && key->number == r->first))
		return place_of(r);
	return horizon_of(p, r);
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
	r = find_id(p, id);
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
	r = find_stream(p, key);
	wish.horizon = r ? horizon_for(p, r, key) : 0;
	r = find_served(p, key);
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
	for (size_t i = 0; i < p->num_readers; i++) {
		if (reader_wants(&p->readers[i], key))
			return true;
	}
	return false;
}

/* Updates the readers that have opened the batch. Returns whether one of them
   needed it until now. */
static bool opened_done(struct plan *p, const struct batch_key *key)
{
	bool changed = false;

	for (size_t i = 0; i < p->num_readers; i++) {
		if (reader_opened(&p->readers[i], key))
			changed |= reader_done(&p->readers[i], key);
	}
	return changed;
}

/* If the batch was prefetched, it was for the reader that opens it first. Later
   readers may find it recycled and cause it to be collated again. */
static void next_done(struct plan *p, const struct batch_key *key)
{
	struct reader *next = find_next(p, key);

	if (next)
		reader_done(next, key);
}

static void let_go(struct plan *p, const struct batch *batch)
{
	struct cache_file *file = file_of(batch->key.ds);

	for (uint32_t i = 0; file && i < batch->samples; i++)
		cache_touch(file, batch->ids[i] / file->per);
	scoped_lock(&p->lock);
	for (size_t i = 0; i < p->num_readers; i++)
		p->readers[i].is_blocked = false;
	pthread_cond_signal(&p->changed);
}

static void count(struct plan *p, const struct batch *batch)
{
	struct reader *r = find_served(p, &batch->key);
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
	       (reads && cache_reading(p->cache) >= p->room / SPARE);
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
	uint64_t reach = reach_of(p, r);
	uint64_t end;

	/* Enough for the link. If several nodes read more, their packets wait
	   for 0.2 s behind each other, and the server sends them again. */
	if (reader_begins(r))
		reach = min_u64(reach, reader_step(r) * r->spec.batch);
	end = min_u64(top + reach, end_of(r));
	if (r->is_blocked || !reader_step(r) || waits_for_first(r) ||
	    !file_of(r->ds) || is_silent(r, now))
		return 0;
	return end - min_u64(end, r->ahead);
}

/* Returns the reader that has the least read ahead. */
static struct reader *choose_reader(struct plan *p)
{
	struct reader *best = NULL, *r = p->readers;
	uint64_t most = 0, room;
	int64_t now = clock_ns();

	for (size_t i = 0; i < p->num_readers; i++, r++) {
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
	c->horizon = horizon_of(p, r);
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
	struct reader *r = p->readers;

	for (size_t i = 0; i < p->num_readers; i++, r++) {
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
	p->ahead = ahead;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	pthread_cond_init(&p->read, NULL);
	*out = p;
	return 0;
}

int plan_start(struct plan *p, struct cache *cache, uint64_t room)
{
	int r;

	p->cache = cache;
	p->room = room;
	r = thread_start(&p->thread, read_ahead, p);
	p->has_thread = !r;
	return r;
}

void plan_set_room(struct plan *p, uint64_t room)
{
	p->room = room;
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
	for (size_t i = 0; i < p->num_readers; i++)
		reader_fini(&p->readers[i]);
	pthread_cond_destroy(&p->read);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

size_t plan_readers(struct plan *p, struct plan_reader *out, size_t max)
{
	int64_t now = clock_ns();

	scoped_lock(&p->lock);
	for (size_t i = 0; i < p->num_readers && i < max; i++) {
		const struct reader *r = &p->readers[i];

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
	return p->num_readers;
}

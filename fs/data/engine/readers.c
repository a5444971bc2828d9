/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/readers.h"

#include "fs/base/util/bytes.h"

enum {
	/* A reader that lags behind the others by this part of an epoch is put
	   level with them again. */
	DRIFT = 16,
	/* Samples of a chunk whose next use is looked up. If there were more,
	   one of them would always be near. */
	LOOKED_AT = 16,
	/* Readers that have opened so few batches may open no more. */
	FEW = 2,
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

uint64_t readers_place(const struct reader *r)
{
	return r->base + reader_position(r) * r->weight;
}

static void rekey(struct readers *s)
{
	if (s->cache)
		cache_rekey(s->cache);
}

bool readers_is_silent(const struct reader *r, int64_t now)
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

/* The loader of a mount opens one small batch to learn about the fields; such a
   reader needs no share. */
uint64_t readers_sharing(const struct readers *s, const struct reader *with,
			 bool beside)
{
	const struct reader *r = s->list;
	uint64_t n = 1;

	for (size_t i = 0; i < s->num; i++, r++)
		n += r != with && !r->is_silent && r->opened > FEW &&
		     (beside || !is_beside(r, with));
	return n;
}

void readers_note_silent(struct readers *s, int64_t now)
{
	struct reader *r = s->list;
	bool changed = false;

	for (size_t i = 0; i < s->num; i++, r++) {
		changed |= r->is_silent != readers_is_silent(r, now);
		r->is_silent = readers_is_silent(r, now);
	}
	if (changed)
		rekey(s);
}

void readers_forget(struct readers *s, int64_t now)
{
	for (size_t i = 0; i < s->num;) {
		if (now - s->list[i].last_ns <= forget_ns) {
			i++;
			continue;
		}
		reader_fini(&s->list[i]);
		s->list[i] = s->list[--s->num];
		rekey(s);
	}
}

struct reader *readers_find(struct readers *s, const struct batch_key *key)
{
	struct reader *best = NULL, *r = s->list;

	for (size_t i = 0; i < s->num; i++, r++) {
		if (!reader_matches(r, key))
			continue;
		if (r->epoch == key->epoch)
			return r;
		if (!best || r->top > best->top)
			best = r;
	}
	return best;
}

struct reader *readers_find_stream(struct readers *s,
				   const struct batch_key *key)
{
	for (size_t i = 0; i < s->num; i++) {
		if (s->list[i].ds == key->ds &&
		    spec_equal(&s->list[i].spec, key->spec))
			return &s->list[i];
	}
	return NULL;
}

struct reader *readers_find_id(struct readers *s, uint64_t id)
{
	for (size_t i = 0; i < s->num; i++) {
		if (s->list[i].id == id)
			return &s->list[i];
	}
	return NULL;
}

struct reader *readers_find_next(struct readers *s, const struct batch_key *key)
{
	struct reader *next = NULL, *r = s->list;

	for (size_t i = 0; i < s->num; i++, r++) {
		if (r->epoch == key->epoch && reader_wants(r, key) &&
		    (!next || r->top > next->top))
			next = r;
	}
	return next;
}

struct reader *readers_find_served(struct readers *s,
				   const struct batch_key *key)
{
	struct reader *next = readers_find_next(s, key);

	for (size_t i = 0; i < s->num; i++) {
		if (reader_opened(&s->list[i], key))
			return &s->list[i];
	}
	return next ? next : readers_find_stream(s, key);
}

struct reader *readers_add(struct readers *s, const struct batch_key *key)
{
	struct reader *r = &s->list[0];

	for (size_t i = 1; i < s->num; i++) {
		if (s->list[i].last_ns < r->last_ns)
			r = &s->list[i];
	}
	if (s->num < READERS_MAX)
		r = &s->list[s->num++];
	else
		reader_fini(r);
	reader_init(r, key);
	r->id = ++s->ids;
	r->base = s->clock - min_u64(s->clock, reader_position(r) * r->weight);
	rekey(s);
	return r;
}

void readers_keep_level(struct readers *s, struct reader *r)
{
	uint64_t place = readers_place(r);

	if (place >= s->clock) {
		s->clock = place;
	} else if (s->clock - place > r->samples * r->weight / DRIFT) {
		r->base += s->clock - place;
		rekey(s);
	}
}

static uint64_t next_use_of(const struct reader *r, uint64_t sample)
{
	uint64_t use = reader_next_use(r, sample);

	if (use == READER_NEVER)
		return CACHE_NEVER;
	use = r->base + use * r->weight;
	return r->is_silent ? use + silent_later : use;
}

static uint64_t next_use(const struct readers *s, const struct dataset *ds,
			 uint64_t sample)
{
	const struct reader *r = s->list;
	uint64_t best = CACHE_NEVER;

	for (size_t i = 0; i < s->num; i++, r++) {
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

uint64_t readers_chunk_next_use(const struct readers *s,
				const struct cache_file *file, uint64_t chunk)
{
	const struct looked_at at = look_at(file, chunk);
	uint64_t best = CACHE_NEVER;

	for (uint64_t i = at.first; i < at.end; i += at.step)
		best = min_u64(best, next_use(s, file->ds, i));
	return max_u64(best, 1);
}

/* Returns whether a reader needs a sample up to the horizon. Only the next
   batches of other readers count, as many as they are likely to open. */
static bool sample_is_due(const struct readers *s, const struct dataset *ds,
			  uint64_t sample, uint64_t reader, uint64_t until)
{
	const struct reader *r = s->list;
	uint64_t horizon;

	for (size_t i = 0; i < s->num; i++, r++) {
		if (r->ds != ds)
			continue;
		horizon = r->id == reader ? until : min_u64(until, r->trusted);
		if (next_use_of(r, sample) <= horizon)
			return true;
	}
	return false;
}

bool readers_chunk_is_due(const struct readers *s,
			  const struct cache_file *file, uint64_t chunk,
			  uint64_t reader, uint64_t horizon)
{
	const struct looked_at at = look_at(file, chunk);

	for (uint64_t i = at.first; i < at.end; i += at.step) {
		if (sample_is_due(s, file->ds, i, reader, horizon))
			return true;
	}
	return false;
}

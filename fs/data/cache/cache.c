/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/cache.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/cache/cold.h"
#include "fs/data/cache/evict.h"
#include "fs/data/cache/fill.h"
#include "fs/data/dataset/value.h"

enum {
	/* Reads of less than about two pages cost the same for any size. */
	CHUNK_BYTES = 8 << 10,
	CHUNK_SAMPLES_MAX = 1024,
	/* Metadata that is read at a time, unless one record is larger. */
	RECORDS_BYTES = 1 << 20,
	/* A chunk may take this part of the limit; larger ones are not
	   cached. */
	CHUNK_SHARE = 16,
};

struct cache {
	struct cache_options options;
	struct cache_file *files[CACHE_FILES_MAX];
	uint32_t num_files;
	struct table table;
	struct room room;
	atomic_uint reads;
	atomic_uint_fast64_t reading; /* their bytes */
	struct source_wait wait;      /* cache_close() waits for the reads */
	struct counts counts;
};

/* Frees a chunk that is not in the table any more and has no references. */
static void free_chunk(struct cache *c, struct chunk *g)
{
	scoped_lock(&c->room.lock);
	evict_give_back(&c->room, g);
}

static void unpin_chunk(struct cache *c, struct chunk *g)
{
	if (table_unpin(&c->table, g))
		free_chunk(c, g);
}

static void settle_chunk(struct cache *c, struct chunk *g,
			 enum chunk_state state)
{
	if (table_settle(&c->table, g, state))
		free_chunk(c, g);
}

/* --- reading --- */

/* Adds the missing chunks of a range to the table, as being read. */
static unsigned claim_chunks(struct cache_file *file,
			     const struct cache_want *want, struct chunk **out)
{
	uint64_t end = min_u64(want->end, file->chunks);
	struct table *t = &file->cache->table;
	struct chunk *g, **at;
	struct table_shard *s;
	unsigned n = 0;

	for (uint64_t i = want->first; i < end && n < CACHE_RUN; i++) {
		s = table_shard_of(t, file, i);
		scoped_lock(&s->lock);
		at = table_find(t, file, i);
		g = *at ? NULL : calloc(1, sizeof(*g));
		if (!g)
			continue;
		g->file = file;
		g->index = i;
		g->owner = want->owner;
		g->is_missed = i == want->must;
		g->refs = 1;
		*at = g;
		out[n++] = g;
	}
	return n;
}

static uint64_t samples_before(const struct cache_file *file, uint64_t chunk)
{
	return min_u64(chunk * file->per, file->ds->format.samples);
}

/* Returns the number of chunks whose records fit into RECORDS_BYTES; at least
   one. */
static unsigned records_together(const struct cache_file *file,
				 struct chunk *const *chunks, unsigned n)
{
	uint64_t most = RECORDS_BYTES / max_u64(1, file->ds->format.itemsize);
	unsigned i = 1;

	while (i < n &&
	       (chunks[i]->index + 1 - chunks[0]->index) * file->per <= most)
		i++;
	return i;
}

/* Finds the offsets of some chunks, with one read of the metadata for all. */
static int locate_with_one_read(struct cache_file *file, struct chunk **chunks,
				unsigned n)
{
	uint64_t itemsize = file->ds->format.itemsize, from, to;
	uint64_t first = samples_before(file, chunks[0]->index);
	uint64_t end = samples_before(file, chunks[n - 1]->index + 1);
	cleanup_free uint8_t *records = malloc((end - first) * itemsize + 1);
	int r = records ? dataset_records(file->ds, first, end - first, records)
			: -ENOMEM;

	for (unsigned i = 0; i < n && !r; i++) {
		from = samples_before(file, chunks[i]->index);
		to = samples_before(file, chunks[i]->index + 1);
		chunk_locate(chunks[i], file->ds,
			     records + (from - first) * itemsize, from,
			     to - from);
	}
	return r;
}

static int locate_chunks(struct cache_file *file, struct chunk **chunks,
			 unsigned n)
{
	unsigned some;
	int r = 0;

	for (unsigned i = 0; i < n && !r; i += some) {
		some = records_together(file, chunks + i, n - i);
		r = locate_with_one_read(file, chunks + i, some);
	}
	return r;
}

/* Allocates memory for a chunk. Chunks that are too large get none, and are
   READY without contents. */
static int alloc_chunk_frames(struct cache *c, struct chunk *g, bool must)
{
	uint64_t bytes = (uint64_t)g->num_frames * ARENA_FRAME, overhead;
	struct room *room = &c->room;
	int r;

	if (bytes > c->options.limit / CHUNK_SHARE) {
		g->num_frames = 0;
		g->num_extents = 0;
		bytes = 0;
	}
	overhead = sizeof(*g) + g->num_frames * sizeof(*g->frames);
	g->frames = malloc(g->num_frames * sizeof(*g->frames) + 1);
	if (!g->frames)
		return -ENOMEM;
	scoped_lock(&room->lock);
	r = evict_make_room(room, bytes, overhead,
			    must ? 0 : evict_key(room, g));
	if (!r)
		r = arena_alloc(room->arena, g->frames, g->num_frames);
	if (r)
		free(steal(g->frames));
	else
		g->charged = overhead;
	room->overhead += g->charged;
	return r;
}

static void read_done(void *arg, uint64_t owner, uint64_t bytes, int result)
{
	struct cache_file *file = arg;
	struct cache *c = file->cache;

	atomic_fetch_sub(&c->reading, bytes);
	bytes = result ? 0 : bytes;
	count(&c->counts, READS, 1);
	count(&c->counts, READ_BYTES, bytes);
	atomic_fetch_sub(&file->reads, 1);
	atomic_fetch_sub(&c->reads, 1);
	c->options.read_done(c->options.arg, owner, bytes);
	source_wait_done(&c->wait);
}

static void read_begun(void *arg, uint64_t bytes)
{
	struct cache_file *file = arg;
	struct cache *c = file->cache;

	source_wait_add(&c->wait);
	atomic_fetch_add(&c->reading, bytes);
	atomic_fetch_add(&file->reads, 1);
	atomic_fetch_add(&c->reads, 1);
}

static void chunk_done(void *arg, struct chunk *g)
{
	settle_chunk(((struct cache_file *)arg)->cache, g,
		     atomic_load(&g->error) ? CHUNK_FAILED : CHUNK_READY);
}

/* Gives memory to chunks. Moves the chunks that are to be read to the front and
   returns their number. A nonzero `*error` has failed them all. */
static unsigned prepare_chunks(struct cache *c, struct chunk **chunks,
			       unsigned n, uint64_t must, int *error)
{
	unsigned left = 0;
	int located = *error, r;

	for (unsigned i = 0; i < n; i++) {
		r = located ? located
			    : alloc_chunk_frames(c, chunks[i],
						 chunks[i]->index == must);
		if (r) {
			settle_chunk(c, chunks[i], CHUNK_GONE);
			*error = r;
		} else if (!chunks[i]->num_frames ||
			   evict_take_cold(&c->room, chunks[i])) {
			settle_chunk(c, chunks[i], CHUNK_READY);
		} else {
			chunks[left++] = chunks[i];
		}
	}
	return left;
}

int cache_fetch(struct cache_file *file, const struct cache_want *want)
{
	struct chunk *chunks[CACHE_RUN];
	unsigned n = claim_chunks(file, want, chunks);
	int r;

	if (!n)
		return 0;
	r = locate_chunks(file, chunks, n);
	n = prepare_chunks(file->cache, chunks, n, want->must, &r);
	if (n)
		fill_chunks(file->target, chunks, n);
	return r;
}

/* --- reading values --- */

/* Returns the chunk of a value with a reference, and reads it first if it is
   missing. NULL: it cannot be read, or there is no room. */
static struct chunk *need_chunk(struct cache_file *file, uint64_t index,
				struct payload_tally *tally)
{
	const struct cache_want want = {
		.first = index,
		.end = index + 1,
		.must = index,
		.owner = tally ? atomic_load(&tally->owner) : 0,
	};
	struct cache *c = file->cache;
	struct chunk *g = table_pin(&c->table, file, index);

	if (!g) {
		cache_fetch(file, &want);
		g = table_pin(&c->table, file, index);
	}
	if (!g)
		count_value(&c->counts, tally, PAYLOAD_MISSES, 1);
	if (g && table_wait(&c->table, g, tally))
		return g;
	if (g)
		unpin_chunk(c, g);
	return NULL;
}

static int read_value(struct payloads *payloads,
		      const struct payload_read *what)
{
	struct cache_file *file = (struct cache_file *)payloads;
	struct cache *c = file->cache;
	struct chunk *g =
		need_chunk(file, what->sample / file->per, what->tally);
	bool copied = g && chunk_copy(g, c->room.arena, what);

	if (g)
		unpin_chunk(c, g);
	count_value(&c->counts, what->tally, PAYLOAD_BYTES, what->size);
	if (copied)
		return 0;
	/* If the read of a whole chunk has failed, this value may still be
	   readable: read it alone. */
	count_value(&c->counts, what->tally, PAYLOAD_BYPASSED, 1);
	return source_read(file->ds->source, what->buf, what->size, what->off);
}

/* --- opening and closing --- */

static const struct payload_ops payload_ops = { .read = read_value };

static uint64_t samples_per_chunk(const struct dataset *ds)
{
	uint64_t n = ds->format.samples, per = 1;

	while (per < CHUNK_SAMPLES_MAX && n &&
	       per * (dataset_data_bytes(ds) / n) < CHUNK_BYTES &&
	       2 * per * ds->format.itemsize <= RECORDS_BYTES)
		per *= 2;
	return per;
}

int cache_add(struct cache *c, struct dataset *ds)
{
	struct cache_file *file;
	struct fill_target *target;

	if (c->num_files == CACHE_FILES_MAX)
		return -E2BIG;
	file = calloc(1, sizeof(*file));
	target = malloc(sizeof(*target));
	if (!file || !target) {
		free(file);
		free(target);
		return -ENOMEM;
	}
	*target = (struct fill_target){
		.arena = c->room.arena,
		.source = ds->source,
		.read_begun = read_begun,
		.read_done = read_done,
		.chunk_done = chunk_done,
		.arg = file,
	};
	*file = (struct cache_file){
		.payloads.ops = &payload_ops,
		.cache = c,
		.ds = ds,
		.target = target,
		.id = c->num_files,
		.per = samples_per_chunk(ds),
	};
	file->chunks = (ds->format.samples + file->per - 1) / file->per;
	c->files[c->num_files++] = file;
	ds->payloads = &file->payloads;
	return 0;
}

int cache_open(const struct cache_options *options, struct cache **out)
{
	struct cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->options = *options;
	c->room = (struct room){ .table = &c->table,
				 .counts = &c->counts,
				 .next_use = options->next_use,
				 .wasted = options->wasted,
				 .arg = options->arg };
	source_wait_init(&c->wait);
	r = table_open(&c->table, options->limit, &c->counts);
	if (!r)
		r = evict_open(&c->room, options->limit, options->cold);
	if (r)
		cache_close(c);
	else
		*out = c;
	return r;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	source_wait_idle(&c->wait);
	source_wait_fini(&c->wait);
	table_close(&c->table);
	for (uint32_t i = 0; i < c->num_files; i++) {
		c->files[i]->ds->payloads = NULL;
		free(c->files[i]->target);
		free(c->files[i]);
	}
	evict_close(&c->room);
	free(c);
}

/*
 * --- settings and statistics for the owner ---
 */

bool cache_has(struct cache_file *file, uint64_t chunk)
{
	return table_has(&file->cache->table, file, chunk);
}

void cache_touch(struct cache_file *file, uint64_t chunk)
{
	if (atomic_load(&file->cache->room.is_full))
		table_touch(&file->cache->table, file, chunk);
}

unsigned cache_reads(const struct cache *c)
{
	return atomic_load(&c->reads);
}

unsigned cache_file_reads(const struct cache_file *file)
{
	return atomic_load(&file->reads);
}

uint64_t cache_reading(const struct cache *c)
{
	return atomic_load(&c->reading);
}

void cache_rekey(struct cache *c)
{
	atomic_store(&c->room.stale, true);
}

void cache_set_limit(struct cache *c, uint64_t bytes)
{
	evict_set_limit(&c->room, bytes);
}

void cache_count(struct cache_counts *counts, struct payload_tally *tally)
{
	uint64_t n[PAYLOAD_COUNTS];

	for (size_t i = 0; i < PAYLOAD_COUNTS; i++)
		n[i] = atomic_exchange(&tally->n[i], 0);
	counts->hits += n[PAYLOAD_HITS];
	counts->stalled += n[PAYLOAD_STALLED];
	counts->misses += n[PAYLOAD_MISSES];
	counts->bypassed += n[PAYLOAD_BYPASSED];
	counts->delivered_bytes += n[PAYLOAD_BYTES];
}

const struct counters *cache_waits(const struct cache *c)
{
	return &c->counts.waits;
}

void cache_stats(struct cache *c, struct cache_stats *out)
{
	struct cold_stats cold = { .used = 0 };
	uint64_t n[COUNTERS], values[PAYLOAD_COUNTS];

	for (size_t i = 0; i < COUNTERS; i++)
		n[i] = atomic_load(&c->counts.counters[i]);
	for (size_t i = 0; i < PAYLOAD_COUNTS; i++)
		values[i] = atomic_load(&c->counts.tally.n[i]);
	if (c->room.cold)
		cold_stats(c->room.cold, &cold);
	scoped_lock(&c->room.lock);
	*out = (struct cache_stats){
		.hits = values[PAYLOAD_HITS],
		.stalled = values[PAYLOAD_STALLED],
		.misses = values[PAYLOAD_MISSES],
		.bypassed = values[PAYLOAD_BYPASSED],
		.reads = n[READS],
		.read_bytes = n[READ_BYTES],
		.delivered_bytes = values[PAYLOAD_BYTES],
		.evicted_bytes = n[EVICTED],
		.wasted_bytes = n[WASTED],
		.cold_hits = n[COLD_HITS],
		.cold_bytes = n[COLD_BYTES],
		.cold_dropped = cold.dropped_incompressible + cold.dropped_full,
		.used_bytes = arena_used(c->room.arena) + c->room.overhead,
		.cold_used_bytes = cold.used,
		.limit = c->room.limit,
	};
}

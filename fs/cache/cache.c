/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/cache/cache.h"

#include <stdlib.h>

#include "fs/cache/cold.h"
#include "fs/cache/fill.h"
#include "fs/cache/table.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"

enum {
	/* Below about two pages a read costs the same whatever its size. */
	CHUNK_BYTES = 8 << 10,
	CHUNK_SAMPLES_MAX = 1024,
	/* Metadata that are looked at at once, unless one record is larger. */
	RECORDS_BYTES = 1 << 20,
	/* The part of the limit that is for chunks themselves: 1/32. */
	OVERHEAD_SHARE = 32,
	/* A chunk may take this part of the limit: larger ones are not kept. */
	CHUNK_SHARE = 16,
};

struct cache {
	struct cache_options options;
	struct cold *cold; /* NULL: none */
	struct cache_file *files[CACHE_FILES_MAX];
	uint32_t num_files;
	struct table table;
	pthread_mutex_t room; /* guards all down to overhead */
	struct arena *arena;
	struct heap heap;
	uint64_t limit;
	uint64_t overhead;
	atomic_bool stale;   /* all keys are */
	atomic_bool is_full; /* there are keys: something was evicted */
	atomic_uint reads;
	struct source_wait wait; /* for the reads, at the end */
	struct counts counts;
};

/* With the room lock held; of one that is neither in the index nor in the
   heap. */
static void give_back(struct cache *c, struct chunk *g)
{
	if (g->frames)
		arena_free(c->arena, g->frames, g->num_frames);
	c->overhead -= g->charged;
	free(g->frames);
	free(g);
}

/* Whoever lets the last reference of an unlinked chunk go frees it. */
static void free_chunk(struct cache *c, struct chunk *g)
{
	scoped_lock(&c->room);
	give_back(c, g);
}

static void unpin(struct cache *c, struct chunk *g)
{
	if (table_unpin(&c->table, g))
		free_chunk(c, g);
}

static void settle(struct cache *c, struct chunk *g, enum chunk_state state)
{
	if (table_settle(&c->table, g, state))
		free_chunk(c, g);
}

/* --- room; all with the room lock held --- */

static uint64_t key_of(struct cache *c, const struct chunk *g)
{
	return c->options.next_use(c->options.arg, g->file, g->index);
}

static void rekey(struct cache *c, struct chunk *g)
{
	struct shard *s = table_shard(&c->table, g->file, g->index);

	scoped_lock(&s->lock);
	g->is_touched = false;
	if (heap_holds(&g->node)) {
		heap_update(&c->heap, &g->node, key_of(c, g));
		return;
	}
	g->node.key = key_of(c, g);
	/* Without memory it stays touched, and is tried again. */
	if (heap_push(&c->heap, &g->node))
		table_mark(s, g);
}

static void rekey_all(struct cache *c)
{
	for (size_t i = 0; i < c->heap.n; i++)
		c->heap.nodes[i]->key =
			key_of(c, (struct chunk *)c->heap.nodes[i]);
	heap_rebuild(&c->heap);
}

static void rekey_touched(struct cache *c)
{
	struct chunk *list, *next;
	struct shard *s;

	for (size_t i = 0; i < TABLE_SHARDS; i++) {
		s = &c->table.shards[i];
		pthread_mutex_lock(&s->lock);
		list = steal(s->touched);
		pthread_mutex_unlock(&s->lock);
		for (; list; list = next) {
			next = list->touched;
			rekey(c, list);
		}
	}
	if (atomic_exchange(&c->stale, false))
		rekey_all(c);
}

/* Takes a chunk out, unless somebody holds it: then it is found again among
   the touched. */
static bool take_out(struct cache *c, struct chunk *g)
{
	struct shard *s = table_shard(&c->table, g->file, g->index);

	heap_remove(&c->heap, &g->node);
	scoped_lock(&s->lock);
	if (g->refs || g->is_touched)
		return false;
	g->state = CHUNK_GONE;
	table_unlink(&c->table, g);
	return true;
}

/* Compresses what was evicted, without the lock. */
static void keep_cold(struct cache *c, const struct chunk *g, uint64_t key)
{
	struct iovec *iov = malloc(g->num_frames * sizeof(*iov));

	pthread_mutex_unlock(&c->room);
	if (iov)
		cold_put(c->cold,
			 g->index | (uint64_t)g->file->id << CACHE_FILE_SHIFT,
			 iov, chunk_iov(g, c->arena, iov), key);
	pthread_mutex_lock(&c->room);
	free(iov);
}

static void evict(struct cache *c, struct chunk *g)
{
	uint64_t bytes = (uint64_t)g->num_frames * ARENA_FRAME;

	count(&c->counts, EVICTED, bytes);
	if (!g->used) {
		count(&c->counts, WASTED, bytes);
		c->options.wasted(c->options.arg, g->owner, bytes);
	}
	if (c->cold && g->num_frames && g->node.key != CACHE_NEVER)
		keep_cold(c, g, g->node.key);
	give_back(c, g);
}

static bool fits(const struct cache *c, uint64_t bytes, uint64_t overhead)
{
	return arena_used(c->arena) + bytes <= arena_limit(c->arena) &&
	       c->overhead + overhead <= c->limit / OVERHEAD_SHARE;
}

/* Evicts what is needed after `key` until so much fits. */
static int make_room(struct cache *c, uint64_t bytes, uint64_t overhead,
		     uint64_t key)
{
	struct heap_node *top;
	uint64_t now;

	while (!fits(c, bytes, overhead)) {
		atomic_store(&c->is_full, true);
		rekey_touched(c);
		top = heap_top(&c->heap);
		if (!top || top->key <= key)
			return -ENOSPC;
		/* Readers have moved on since it got its key. */
		now = key_of(c, (struct chunk *)top);
		if (now < top->key) {
			heap_update(&c->heap, top, now);
			continue;
		}
		if (take_out(c, (struct chunk *)top))
			evict(c, (struct chunk *)top);
	}
	return 0;
}

/* --- reading --- */

/* The chunks of a range that nobody has, now on their way. */
static unsigned claim(struct cache_file *file, const struct cache_want *want,
		      struct chunk **out)
{
	uint64_t end = min_u64(want->end, file->chunks);
	struct table *t = &file->cache->table;
	struct chunk *g, **at;
	struct shard *s;
	unsigned n = 0;

	for (uint64_t i = want->first; i < end && n < CACHE_RUN; i++) {
		s = table_shard(t, file, i);
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

/* How many of the chunks have their records within RECORDS_BYTES; at least
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

/* Where some chunks lie: one read of the metadata for all. */
static int locate_some(struct cache_file *file, struct chunk **chunks,
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

static int locate(struct cache_file *file, struct chunk **chunks, unsigned n)
{
	unsigned some;
	int r = 0;

	for (unsigned i = 0; i < n && !r; i += some) {
		some = records_together(file, chunks + i, n - i);
		r = locate_some(file, chunks + i, some);
	}
	return r;
}

/* Memory for a chunk. Large ones get none, and count as read. */
static int take_frames(struct cache *c, struct chunk *g, bool must)
{
	uint64_t bytes = (uint64_t)g->num_frames * ARENA_FRAME, overhead;
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
	scoped_lock(&c->room);
	r = make_room(c, bytes, overhead, must ? 0 : key_of(c, g));
	if (!r)
		r = arena_alloc(c->arena, g->frames, g->num_frames);
	if (r)
		free(steal(g->frames));
	else
		g->charged = overhead;
	c->overhead += g->charged;
	return r;
}

/* From the cold tier, if it is there. */
static bool take_cold(struct cache *c, struct chunk *g)
{
	cleanup_free struct iovec *iov = NULL;
	int r;

	if (!c->cold)
		return false;
	iov = malloc(g->num_frames * sizeof(*iov));
	if (!iov)
		return false;
	r = cold_take(c->cold,
		      g->index | (uint64_t)g->file->id << CACHE_FILE_SHIFT, iov,
		      chunk_iov(g, c->arena, iov));
	if (r)
		return false;
	count(&c->counts, COLD_HITS, 1);
	count(&c->counts, COLD_BYTES, (uint64_t)g->num_frames * ARENA_FRAME);
	return true;
}

static void read_done(void *arg, uint64_t owner, uint64_t bytes, int result)
{
	struct cache *c = arg;

	bytes = result ? 0 : bytes;
	count(&c->counts, READS, 1);
	count(&c->counts, READ_BYTES, bytes);
	atomic_fetch_sub(&c->reads, 1);
	c->options.read_done(c->options.arg, owner, bytes);
	source_wait_done(&c->wait);
}

static void read_begun(void *arg)
{
	struct cache *c = arg;

	source_wait_add(&c->wait);
	atomic_fetch_add(&c->reads, 1);
}

static void chunk_done(void *arg, struct chunk *g)
{
	settle(arg, g, atomic_load(&g->error) ? CHUNK_FAILED : CHUNK_READY);
}

/* Gives memory to chunks; the number of those that are to be read, in front.
   `error` befell all, or is 0. */
static unsigned prepare(struct cache *c, struct chunk **chunks, unsigned n,
			uint64_t must, int *error)
{
	unsigned left = 0;
	int located = *error, r;

	for (unsigned i = 0; i < n; i++) {
		r = located ? located
			    : take_frames(c, chunks[i],
					  chunks[i]->index == must);
		if (r) {
			settle(c, chunks[i], CHUNK_GONE);
			*error = r;
		} else if (!chunks[i]->num_frames || take_cold(c, chunks[i])) {
			settle(c, chunks[i], CHUNK_READY);
		} else {
			chunks[left++] = chunks[i];
		}
	}
	return left;
}

int cache_fetch(struct cache_file *file, const struct cache_want *want)
{
	struct chunk *chunks[CACHE_RUN];
	unsigned n = claim(file, want, chunks);
	int r;

	if (!n)
		return 0;
	r = locate(file, chunks, n);
	n = prepare(file->cache, chunks, n, want->must, &r);
	if (n)
		fill_chunks(file->target, chunks, n);
	return r;
}

/* --- reading values --- */

/* The chunk of a value, with a reference, read if it is not there. NULL: it
   cannot be had. */
static struct chunk *need(struct cache_file *file, uint64_t index,
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
		unpin(c, g);
	return NULL;
}

static int read_value(struct payloads *payloads, uint64_t sample, void *buf,
		      size_t size, uint64_t off, struct payload_tally *tally)
{
	struct cache_file *file = (struct cache_file *)payloads;
	struct cache *c = file->cache;
	struct chunk *g = need(file, sample / file->per, tally);
	bool copied = g && chunk_copy(g, c->arena, buf, size, off);

	if (g)
		unpin(c, g);
	count_value(&c->counts, tally, PAYLOAD_BYTES, size);
	if (copied)
		return 0;
	/* A chunk that could not be read says nothing about one value. */
	count_value(&c->counts, tally, PAYLOAD_BYPASSED, 1);
	return source_read(file->ds->source, buf, size, off);
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
		.arena = c->arena,
		.source = ds->source,
		.read_begun = read_begun,
		.read_done = read_done,
		.chunk_done = chunk_done,
		.arg = c,
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
	c->limit = options->limit;
	pthread_mutex_init(&c->room, NULL);
	source_wait_init(&c->wait);
	r = table_open(&c->table, c->limit, &c->counts);
	if (!r)
		r = arena_open(c->limit - c->limit / OVERHEAD_SHARE, &c->arena);
	if (!r && options->cold)
		r = cold_open(options->cold, &c->cold);
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
	heap_fini(&c->heap);
	cold_close(c->cold);
	arena_close(c->arena);
	pthread_mutex_destroy(&c->room);
	free(c);
}

/* --- what the owner tells and asks --- */

bool cache_has(struct cache_file *file, uint64_t chunk)
{
	return table_has(&file->cache->table, file, chunk);
}

void cache_touch(struct cache_file *file, uint64_t chunk)
{
	if (atomic_load(&file->cache->is_full))
		table_touch(&file->cache->table, file, chunk);
}

unsigned cache_reads(const struct cache *c)
{
	return atomic_load(&c->reads);
}

void cache_rekey(struct cache *c)
{
	atomic_store(&c->stale, true);
}

void cache_set_limit(struct cache *c, uint64_t bytes)
{
	uint64_t now, lower;

	scoped_lock(&c->room);
	now = arena_limit(c->arena);
	c->limit = bytes;
	bytes -= bytes / OVERHEAD_SHARE;
	/* As if what has to go were asked for. What is held now goes as soon as
	   it is let go. */
	lower = now - min_u64(now, bytes);
	make_room(c, lower, 0, 0);
	arena_set_limit(c->arena, bytes);
}

void cache_count(struct cache_counts *counts, struct payload_tally *tally)
{
	uint64_t n[PAYLOAD_COUNTS];

	for (size_t i = 0; i < PAYLOAD_COUNTS; i++)
		n[i] = atomic_exchange(&tally->n[i], 0);
	counts->hits += n[PAYLOAD_HITS];
	counts->late += n[PAYLOAD_LATE];
	counts->misses += n[PAYLOAD_MISSES];
	counts->bypassed += n[PAYLOAD_BYPASSED];
	counts->delivered_bytes += n[PAYLOAD_BYTES];
}

const struct tally *cache_waits(const struct cache *c)
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
	if (c->cold)
		cold_stats(c->cold, &cold);
	scoped_lock(&c->room);
	*out = (struct cache_stats){
		.hits = values[PAYLOAD_HITS],
		.late = values[PAYLOAD_LATE],
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
		.used_bytes = arena_used(c->arena) + c->overhead,
		.cold_used_bytes = cold.used,
		.limit = c->limit,
	};
}

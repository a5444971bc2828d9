/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/table.h"

#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/file.h"

enum {
	SHARDS = TABLE_SHARDS,
	/* Bytes of the limit per bucket: chains stay short for the common 10 to
	   100 KB, and 8 bytes for each bucket cost little. */
	BYTES_PER_BUCKET = 32 << 10,
	/* The maximum of buckets in each shard, enough for half a TiB. */
	BUCKETS_MAX = 1 << 20,
};

static uint64_t hash_of(const struct cache_file *file, uint64_t index)
{
	return rng_mix(index ^ (uint64_t)file->id << CACHE_FILE_SHIFT);
}

struct table_shard *
table_shard_of(struct table *t, const struct cache_file *file, uint64_t index)
{
	return &t->shards[hash_of(file, index) % SHARDS];
}

static struct table_shard *shard_of(struct table *t, const struct chunk *g)
{
	return table_shard_of(t, g->file, g->index);
}

struct chunk **table_find(struct table *t, const struct cache_file *file,
			  uint64_t index)
{
	struct table_shard *s = table_shard_of(t, file, index);
	struct chunk **at =
		&s->buckets[hash_of(file, index) / SHARDS & t->mask];

	while (*at && ((*at)->index != index || (*at)->file != file))
		at = &(*at)->chain;
	return at;
}

void table_unlink(struct table *t, struct chunk *g)
{
	struct chunk **at = table_find(t, g->file, g->index);

	*at = g->chain;
}

void table_mark_touched(struct table_shard *s, struct chunk *g)
{
	if (g->is_touched)
		return;
	g->is_touched = true;
	g->touched = s->touched;
	s->touched = g;
}

bool table_unpin(struct table *t, struct chunk *g)
{
	struct table_shard *s = shard_of(t, g);
	bool last;

	scoped_lock(&s->lock);
	last = !--g->refs && g->state >= CHUNK_FAILED;
	if (g->state == CHUNK_READY)
		table_mark_touched(s, g);
	return last;
}

bool table_settle(struct table *t, struct chunk *g, enum chunk_state state)
{
	struct table_shard *s = shard_of(t, g);

	pthread_mutex_lock(&s->lock);
	g->state = state;
	if (state != CHUNK_READY)
		table_unlink(t, g);
	pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
	return table_unpin(t, g);
}

struct chunk *table_pin(struct table *t, const struct cache_file *file,
			uint64_t index)
{
	struct table_shard *s = table_shard_of(t, file, index);
	struct chunk *g;

	scoped_lock(&s->lock);
	g = *table_find(t, file, index);
	if (g)
		g->refs++;
	return g;
}

/* Returns the counter for a reader that finds a chunk in its present state. The
   caller holds the shard's lock. */
static enum payload_count count_of_chunk(const struct chunk *g)
{
	if (g->is_missed && !g->used)
		return PAYLOAD_MISSES;
	return g->state == CHUNK_READY ? PAYLOAD_HITS : PAYLOAD_STALLED;
}

/* The caller holds the shard's lock. */
static void wait_chunk_read(struct counts *c, struct table_shard *s,
			    const struct chunk *g, struct payload_tally *tally)
{
	int64_t begin = clock_ns();
	uint64_t ns;

	while (g->state == CHUNK_READING)
		pthread_cond_wait(&s->settled, &s->lock);
	ns = (uint64_t)(clock_ns() - begin);
	count_value(c, tally, PAYLOAD_WAIT_NS, ns);
	counters_add(&c->waits.input_wait_ns, ns);
	counters_add(&c->waits.times[histogram_bucket(ns)], 1);
}

bool table_wait(struct table *t, struct chunk *g, struct payload_tally *tally)
{
	struct table_shard *s = shard_of(t, g);

	scoped_lock(&s->lock);
	count_value(t->counts, tally, count_of_chunk(g), 1);
	if (g->state == CHUNK_READING)
		wait_chunk_read(t->counts, s, g, tally);
	g->used = true;
	return g->state == CHUNK_READY;
}

bool table_has(struct table *t, const struct cache_file *file, uint64_t index)
{
	struct table_shard *s = table_shard_of(t, file, index);

	scoped_lock(&s->lock);
	return *table_find(t, file, index) != NULL;
}

void table_touch(struct table *t, const struct cache_file *file, uint64_t index)
{
	struct table_shard *s = table_shard_of(t, file, index);
	struct chunk *g;

	scoped_lock(&s->lock);
	g = *table_find(t, file, index);
	if (g && g->state == CHUNK_READY)
		table_mark_touched(s, g);
}

/* --- opening and closing --- */

int table_open(struct table *t, uint64_t limit, struct counts *counts)
{
	size_t buckets = 64;

	while (buckets < BUCKETS_MAX &&
	       buckets * SHARDS * BYTES_PER_BUCKET < limit)
		buckets *= 2;
	t->mask = buckets - 1;
	t->counts = counts;
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&t->shards[i].lock, NULL);
		pthread_cond_init(&t->shards[i].settled, NULL);
		t->shards[i].buckets =
			calloc(buckets, sizeof(*t->shards[i].buckets));
		if (!t->shards[i].buckets)
			return -ENOMEM;
	}
	return 0;
}

static void close_shard(struct table *t, struct table_shard *s)
{
	struct chunk *g, *next;

	for (size_t i = 0; s->buckets && i <= t->mask; i++) {
		for (g = s->buckets[i]; g; g = next) {
			next = g->chain;
			free(g->frames);
			free(g);
		}
	}
	free(s->buckets);
	pthread_cond_destroy(&s->settled);
	pthread_mutex_destroy(&s->lock);
}

void table_close(struct table *t)
{
	for (size_t i = 0; i < SHARDS; i++)
		close_shard(t, &t->shards[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/evict.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/cache/cold.h"
#include "fs/data/cache/file.h"

enum {
	/* The part of the limit for bookkeeping of chunks: 1/32. */
	OVERHEAD_SHARE = 32,
	/* Computing all keys again takes at most 1/REKEY_SHARE of the time,
	   because all reads wait for it. In between, the keys ignore new
	   readers. */
	REKEY_SHARE = 10,
	/* Ignore shorter times, in milliseconds. */
	REKEY_FREE_MS = 1,
};

void evict_give_back(struct room *room, struct chunk *g)
{
	if (g->frames)
		arena_free(room->arena, g->frames, g->num_frames);
	room->overhead -= g->charged;
	free(g->frames);
	free(g);
}

uint64_t evict_key(struct room *room, const struct chunk *g)
{
	return room->next_use(room->arg, g->file, g->index);
}

static void rekey_chunk(struct room *room, struct chunk *g)
{
	struct table_shard *s = table_shard_of(room->table, g->file, g->index);

	scoped_lock(&s->lock);
	g->is_touched = false;
	if (heap_holds(&g->node)) {
		heap_update(&room->heap, &g->node, evict_key(room, g));
		return;
	}
	g->node.key = evict_key(room, g);
	/* If there is no memory for the heap, the chunk stays touched, and a
	   later call tries again. */
	if (heap_push(&room->heap, &g->node))
		table_mark_touched(s, g);
}

static void rekey_all(struct room *room)
{
	const int64_t begin = clock_ns();
	int64_t cost;

	if (begin < room->rekey_ns)
		return;
	atomic_store(&room->stale, false);
	for (size_t i = 0; i < room->heap.n; i++)
		room->heap.nodes[i]->key =
			evict_key(room, (struct chunk *)room->heap.nodes[i]);
	heap_rebuild(&room->heap);
	cost = clock_ns() - begin;
	if (cost > REKEY_FREE_MS * 1000000LL)
		room->rekey_ns = begin + REKEY_SHARE * cost;
}

static void rekey_touched(struct room *room)
{
	struct chunk *list, *next;
	struct table_shard *s;

	for (size_t i = 0; i < TABLE_SHARDS; i++) {
		s = &room->table->shards[i];
		pthread_mutex_lock(&s->lock);
		list = steal(s->touched);
		pthread_mutex_unlock(&s->lock);
		for (; list; list = next) {
			next = list->touched;
			rekey_chunk(room, list);
		}
	}
	if (atomic_load(&room->stale))
		rekey_all(room);
}

/*
 * Removes a chunk from the heap and the table. If it has references or was just
 * used, returns false; then it stays in the table, and returns to the heap when
 * it is touched.
 */
static bool take_chunk_out(struct room *room, struct chunk *g)
{
	struct table_shard *s = table_shard_of(room->table, g->file, g->index);

	heap_remove(&room->heap, &g->node);
	scoped_lock(&s->lock);
	if (g->refs || g->is_touched)
		return false;
	g->state = CHUNK_GONE;
	table_unlink(room->table, g);
	return true;
}

static uint64_t cold_key(const struct chunk *g)
{
	return g->index | (uint64_t)g->file->id << CACHE_FILE_SHIFT;
}

/* Compresses an evicted chunk. Releases the lock meanwhile. */
static void keep_chunk_cold(struct room *room, const struct chunk *g,
			    uint64_t key)
{
	struct iovec *iov = malloc(g->num_frames * sizeof(*iov));

	pthread_mutex_unlock(&room->lock);
	if (iov)
		cold_put(room->cold, cold_key(g), iov,
			 chunk_iov(g, room->arena, iov), key);
	pthread_mutex_lock(&room->lock);
	free(iov);
}

static void evict_chunk(struct room *room, struct chunk *g)
{
	uint64_t bytes = (uint64_t)g->num_frames * ARENA_FRAME;

	count(room->counts, EVICTED, bytes);
	if (!g->used) {
		count(room->counts, WASTED, bytes);
		room->wasted(room->arg, g->owner, bytes);
	}
	if (room->cold && g->num_frames && g->node.key != CACHE_NEVER)
		keep_chunk_cold(room, g, g->node.key);
	evict_give_back(room, g);
}

static bool fits(const struct room *room, uint64_t bytes, uint64_t overhead)
{
	return arena_used(room->arena) + bytes <= arena_limit(room->arena) &&
	       room->overhead + overhead <= room->limit / OVERHEAD_SHARE;
}

int evict_make_room(struct room *room, uint64_t bytes, uint64_t overhead,
		    uint64_t key)
{
	struct heap_node *top;
	uint64_t now;

	while (!fits(room, bytes, overhead)) {
		atomic_store(&room->is_full, true);
		rekey_touched(room);
		top = heap_top(&room->heap);
		if (!top || top->key <= key)
			return -ENOSPC;
		/* Readers have advanced since the chunk got its key. */
		now = evict_key(room, (struct chunk *)top);
		if (now < top->key) {
			heap_update(&room->heap, top, now);
			continue;
		}
		if (take_chunk_out(room, (struct chunk *)top))
			evict_chunk(room, (struct chunk *)top);
	}
	return 0;
}

bool evict_take_cold(struct room *room, struct chunk *g)
{
	cleanup_free struct iovec *iov = NULL;
	int r;

	if (!room->cold)
		return false;
	iov = malloc(g->num_frames * sizeof(*iov));
	if (!iov)
		return false;
	r = cold_take(room->cold, cold_key(g), iov,
		      chunk_iov(g, room->arena, iov));
	if (r)
		return false;
	count(room->counts, COLD_HITS, 1);
	count(room->counts, COLD_BYTES, (uint64_t)g->num_frames * ARENA_FRAME);
	return true;
}

void evict_set_limit(struct room *room, uint64_t bytes)
{
	uint64_t now, lower;

	scoped_lock(&room->lock);
	now = arena_limit(room->arena);
	room->limit = bytes;
	bytes -= bytes / OVERHEAD_SHARE;
	/* Evicts until the chunks fit into the limit. Chunks in use are evicted
	   after their use. */
	lower = now - min_u64(now, bytes);
	evict_make_room(room, lower, 0, 0);
	arena_set_limit(room->arena, bytes);
}

/* --- opening and closing --- */

int evict_open(struct room *room, uint64_t limit, uint64_t cold)
{
	int r;

	room->limit = limit;
	pthread_mutex_init(&room->lock, NULL);
	r = arena_open(limit - limit / OVERHEAD_SHARE, &room->arena);
	if (!r && cold)
		r = cold_open(cold, &room->cold);
	return r;
}

void evict_close(struct room *room)
{
	heap_fini(&room->heap);
	cold_close(room->cold);
	arena_close(room->arena);
	pthread_mutex_destroy(&room->lock);
}

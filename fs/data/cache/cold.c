/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/cold.h"

#include <errno.h>
#include <lz4.h>
#include <pthread.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/arena.h"
#include "fs/data/cache/heap.h"

enum {
	/* Segments are compressed one by one, so that the data stays in a
	   core's cache. LZ4 looks back no further. */
	SEGMENT = 64 << 10,
	/* The header of a segment: its stored size, and whether it is raw. */
	HEADER = 4,
	/*
	 * Bytes of an item that are tried first, LZ4's acceleration, and the
	 * limit of the result in eighths. A fast try misses some matches.
	 * Therefore it may save less than the final result must.
	 */
	PROBE = 16 << 10,
	PROBE_HASTE = 4,
	PROBE_EIGHTHS = 7,
	/* After this many failures in a row, one item in this many is tried. */
	STREAK = 32,
	/* A low estimate of the mean size of an item, for the size of the
	   table. */
	ITEM_TYPICAL = 16 << 10,
	/* Bytes of malloc for an item, and the heap's two pointers. */
	ITEM_BOOKS = 32,
	/* The part of the limit for bookkeeping: 90 bytes for an item of one
	   frame, less in proportion for larger items. */
	BOOKS_PART = 32,
};

static const uint32_t RAW = (uint32_t)1 << 31;

struct cold_item {
	struct cold_item *next; /* in its bucket */
	uint64_t key;
	struct heap_node node; /* its key: the next use */
	uint32_t size;
	uint32_t stored;
	uint32_t frames[];
};

struct cold {
	pthread_mutex_t lock; /* guards the members below */
	struct arena *arena;
	struct heap heap;
	struct cold_item **buckets;
	uint64_t num_buckets; /* a power of two */
	uint64_t books;	      /* bytes, of items */
	unsigned streak;      /* of items that did not shrink */
	unsigned skipped;     /* since the last try */
	struct cold_stats stats;
};

struct cold_scratch {
	uint8_t raw[SEGMENT];
	uint8_t packed[SEGMENT];
};

static uint32_t frames_of(uint64_t bytes)
{
	return (uint32_t)((bytes + ARENA_FRAME - 1) / ARENA_FRAME);
}

static uint64_t books_of(const struct cold_item *item)
{
	return sizeof(*item) + ITEM_BOOKS +
	       frames_of(item->stored) * sizeof(item->frames[0]);
}

/* --- places in an iovec --- */

struct cold_cursor {
	const struct iovec *iov;
	size_t at;
};

static uint64_t iov_bytes(const struct iovec *iov, unsigned n)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!add_ok(size, iov[i].iov_len, &size))
			return UINT64_MAX;
	}
	return size;
}

/* The next `size` bytes if they are contiguous, or NULL. Does not advance. */
static uint8_t *in_one_piece(struct cold_cursor *c, size_t size)
{
	while (c->at == c->iov->iov_len) {
		c->iov++;
		c->at = 0;
	}
	if (c->iov->iov_len - c->at < size)
		return NULL;
	return (uint8_t *)c->iov->iov_base + c->at;
}

/* The next `size` bytes, copied to `scratch` unless they are contiguous. */
static const uint8_t *gather(struct cold_cursor *c, uint8_t *scratch,
			     size_t size)
{
	const uint8_t *bytes = in_one_piece(c, size);
	size_t n;

	if (bytes) {
		c->at += size;
		return bytes;
	}
	for (size_t done = 0; done < size; done += n) {
		bytes = in_one_piece(c, 1);
		n = (size_t)min_u64(size - done, c->iov->iov_len - c->at);
		memcpy(scratch + done, bytes, n);
		c->at += n;
	}
	return scratch;
}

static void scatter(struct cold_cursor *c, const uint8_t *from, size_t size)
{
	uint8_t *to;
	size_t n;

	for (; size; size -= n, from += n) {
		to = in_one_piece(c, 1);
		n = (size_t)min_u64(size, c->iov->iov_len - c->at);
		memcpy(to, from, n);
		c->at += n;
	}
}

/* --- compressing --- */

static bool probe(const struct iovec *in, size_t size, struct cold_scratch *s)
{
	struct cold_cursor c = { .iov = in };
	int n = (int)min_u64(size, PROBE);
	const uint8_t *raw = gather(&c, s->raw, (size_t)n);

	return LZ4_compress_fast((const char *)raw, (char *)s->packed, n,
				 n / 8 * PROBE_EIGHTHS, PROBE_HASTE) > 0;
}

/* Compresses one segment. Returns its size with the header, or 0 if it does not
   fit into `room`. */
static size_t pack_segment(const uint8_t *raw, size_t n, uint8_t *out,
			   size_t room)
{
	int got;

	if (room <= HEADER)
		return 0;
	room -= HEADER;
	got = LZ4_compress_default((const char *)raw, (char *)out + HEADER,
				   (int)n, (int)min_u64(room, n - 1));
	if (got > 0) {
		store32(out, (uint32_t)got);
		return HEADER + (size_t)got;
	}
	if (room < n)
		return 0;
	store32(out, (uint32_t)n | RAW);
	memcpy(out + HEADER, raw, n);
	return HEADER + n;
}

/* Compresses all of `in`. Returns the size, or 0 if it does not fit into
   `room`. */
static size_t pack(const struct iovec *in, size_t size, uint8_t *out,
		   size_t room, struct cold_scratch *s)
{
	struct cold_cursor c = { .iov = in };
	size_t used = 0, n, got;

	for (size_t done = 0; done < size; done += n) {
		n = (size_t)min_u64(size - done, SEGMENT);
		got = pack_segment(gather(&c, s->raw, n), n, out + used,
				   room - used);
		if (!got)
			return 0;
		used += got;
	}
	return used;
}

/*
 * The largest result that is worth keeping: three quarters of the size, and at
 * least a frame less. If less is saved, decompressing costs more than the room
 * is worth.
 */
static size_t worth_keeping(size_t size)
{
	size_t frames = frames_of(size);

	return (size_t)min_u64(size - size / 4, (frames - 1) * ARENA_FRAME);
}

double cold_probe(const void *bytes, size_t size)
{
	cleanup_free uint8_t *out = malloc(SEGMENT);
	size_t stored = 0, n;
	int got;

	if (!out || !size)
		return 1;
	for (size_t done = 0; done < size; done += n) {
		n = (size_t)min_u64(size - done, SEGMENT);
		got = LZ4_compress_default((const char *)bytes + done,
					   (char *)out, (int)n, (int)n - 1);
		stored += got > 0 ? (size_t)got : n;
	}
	return (double)stored / (double)size;
}

/* --- items; all with the lock held --- */

static struct cold_item **place_of(struct cold *c, uint64_t key)
{
	struct cold_item **at =
		&c->buckets[rng_mix(key) & (c->num_buckets - 1)];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* Takes an item out of the table and the heap. */
static struct cold_item *unlink_item(struct cold *c, struct cold_item **at)
{
	struct cold_item *item = *at;

	*at = item->next;
	heap_remove(&c->heap, &item->node);
	c->stats.items--;
	return item;
}

static void free_item(struct cold *c, struct cold_item *item)
{
	arena_free(c->arena, item->frames, frames_of(item->stored));
	c->books -= books_of(item);
	free(item);
}

static void drop_item(struct cold *c, uint64_t key)
{
	struct cold_item **at = place_of(c, key);

	if (*at)
		free_item(c, unlink_item(c, at));
}

static const struct cold_item *item_of(const struct heap_node *node)
{
	return (const void *)((const char *)node -
			      offsetof(struct cold_item, node));
}

/* Evicts items that are needed later than `next_use`, until `bytes` are free.
 */
static bool make_room_for(struct cold *c, uint64_t bytes, uint64_t next_use)
{
	struct heap_node *top;

	while (arena_limit(c->arena) - arena_used(c->arena) < bytes) {
		top = heap_top(&c->heap);
		if (!top || top->key <= next_use)
			return false;
		drop_item(c, item_of(top)->key);
	}
	return true;
}

/* --- the tier --- */

int cold_open(uint64_t limit, struct cold **out)
{
	struct cold *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->num_buckets = 1;
	while (c->num_buckets < limit / ITEM_TYPICAL)
		c->num_buckets *= 2;
	c->buckets = calloc(c->num_buckets, sizeof(struct cold_item *));
	r = c->buckets ? arena_open(limit - limit / BOOKS_PART, &c->arena)
		       : -ENOMEM;
	if (r)
		cold_close(c);
	else
		*out = c;
	return r;
}

void cold_close(struct cold *c)
{
	struct cold_item *item, *next;

	if (!c)
		return;
	for (uint64_t i = 0; c->buckets && i < c->num_buckets; i++) {
		for (item = c->buckets[i]; item; item = next) {
			next = item->next;
			free(item);
		}
	}
	heap_fini(&c->heap);
	arena_close(c->arena);
	free(c->buckets);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Returns whether to compress an item. After a streak of failures, only one
   item in many is tried. If a quarter of the size would find no room, none
   is. */
static bool is_worth_trying(struct cold *c, uint64_t key, uint64_t size,
			    uint64_t next_use)
{
	const struct heap_node *top;
	uint64_t room;

	scoped_lock(&c->lock);
	c->stats.puts++;
	drop_item(c, key);
	if (!size || size > COLD_ITEM_MAX ||
	    (c->streak >= STREAK && ++c->skipped % STREAK)) {
		c->stats.dropped_incompressible++;
		return false;
	}
	top = heap_top(&c->heap);
	room = arena_limit(c->arena) - arena_used(c->arena);
	if (room < max_u64(size / 4, ARENA_FRAME) &&
	    (!top || top->key <= next_use)) {
		c->stats.dropped_full++;
		return false;
	}
	return true;
}

static void note_shrinks(struct cold *c, bool shrinks)
{
	scoped_lock(&c->lock);
	if (shrinks) {
		c->streak = 0;
	} else {
		c->streak++;
		c->stats.dropped_incompressible++;
	}
}

/* A new item with frames, not in the table yet, or NULL. */
static struct cold_item *new_item(struct cold *c, uint32_t stored,
				  uint64_t next_use)
{
	uint32_t frames = frames_of(stored);
	struct cold_item *item =
		malloc(sizeof(*item) + frames * sizeof(item->frames[0]));

	if (!item)
		return NULL;
	item->node = (struct heap_node){ .key = next_use };
	item->stored = stored;
	scoped_lock(&c->lock);
	if (!make_room_for(c, (uint64_t)frames * ARENA_FRAME, next_use) ||
	    arena_alloc(c->arena, item->frames, frames)) {
		c->stats.dropped_full++;
		free(item);
		return NULL;
	}
	c->books += books_of(item);
	return item;
}

static bool publish(struct cold *c, struct cold_item *item)
{
	struct cold_item **at;

	scoped_lock(&c->lock);
	drop_item(c, item->key);
	if (heap_push(&c->heap, &item->node)) {
		free_item(c, item);
		return false;
	}
	at = &c->buckets[rng_mix(item->key) & (c->num_buckets - 1)];
	item->next = *at;
	*at = item;
	c->stats.items++;
	c->stats.in_bytes += item->size;
	c->stats.out_bytes += item->stored;
	return true;
}

static void store_item(const struct cold *c, const struct cold_item *item,
		       const uint8_t *packed)
{
	uint32_t n;

	for (uint32_t off = 0; off < item->stored; off += n) {
		n = (uint32_t)min_u64(item->stored - off, ARENA_FRAME);
		memcpy(arena_at(c->arena, item->frames[off / ARENA_FRAME]),
		       packed + off, n);
	}
}

bool cold_put(struct cold *c, uint64_t key, const struct iovec *in, unsigned n,
	      uint64_t next_use)
{
	uint64_t size = iov_bytes(in, n);
	cleanup_free struct cold_scratch *s = NULL;
	cleanup_free uint8_t *packed = NULL;
	struct cold_item *item;
	size_t stored;

	if (!is_worth_trying(c, key, size, next_use))
		return false;
	s = malloc(sizeof(*s));
	packed = malloc(worth_keeping(size) + 1);
	if (!s || !packed)
		return false;
	stored = probe(in, size, s)
			 ? pack(in, size, packed, worth_keeping(size), s)
			 : 0;
	note_shrinks(c, stored);
	item = stored ? new_item(c, (uint32_t)stored, next_use) : NULL;
	if (!item)
		return false;
	item->key = key;
	item->size = (uint32_t)size;
	store_item(c, item, packed);
	return publish(c, item);
}

/* --- taking --- */

/* The stored bytes [off, off + n), without a copy if their frames are
   neighbors. */
static const uint8_t *stored_bytes(const struct cold *c,
				   const struct cold_item *item, uint32_t off,
				   uint32_t n, uint8_t *scratch)
{
	const uint32_t *frame = &item->frames[off / ARENA_FRAME];
	uint32_t in = off % ARENA_FRAME, last = (in + n - 1) / ARENA_FRAME;
	uint32_t piece;

	/* Frame numbers ascend. */
	if (frame[last] - frame[0] == last)
		return (uint8_t *)arena_at(c->arena, *frame) + in;
	for (uint32_t done = 0; done < n; done += piece, in = 0) {
		piece = (uint32_t)min_u64(n - done, ARENA_FRAME - in);
		memcpy(scratch + done,
		       (uint8_t *)arena_at(c->arena, *frame++) + in, piece);
	}
	return scratch;
}

/* Decompresses `packed` bytes to n, by way of `scratch` if the output is not
   contiguous. */
static int unpack_segment(const uint8_t *bytes, uint32_t packed, bool raw,
			  struct cold_cursor *out, uint32_t n, uint8_t *scratch)
{
	uint8_t *to = raw ? NULL : in_one_piece(out, n);

	if (raw) {
		scatter(out, bytes, n);
		return packed == n ? 0 : -EIO;
	}
	if (LZ4_decompress_safe((const char *)bytes,
				(char *)(to ? to : scratch), (int)packed,
				(int)n) != (int)n)
		return -EIO;
	if (to)
		out->at += n;
	else
		scatter(out, scratch, n);
	return 0;
}

static int unpack(const struct cold *c, const struct cold_item *item,
		  const struct iovec *iov, struct cold_scratch *s)
{
	struct cold_cursor out = { .iov = iov };
	uint32_t off = 0, n, header, packed;
	int r = 0;

	for (uint32_t done = 0; done < item->size && !r; done += n) {
		n = (uint32_t)min_u64(item->size - done, SEGMENT);
		header = load32(stored_bytes(c, item, off, HEADER, s->packed));
		packed = header & ~RAW;
		off += HEADER;
		r = unpack_segment(
			stored_bytes(c, item, off, packed, s->packed), packed,
			header & RAW, &out, n, s->raw);
		off += packed;
	}
	return r;
}

/* Takes the item out of the table, so that only the caller has it. */
static int claim_item(struct cold *c, uint64_t key, uint64_t size,
		      struct cold_item **out)
{
	struct cold_item **at;

	scoped_lock(&c->lock);
	at = place_of(c, key);
	if (!*at)
		return -ENOENT;
	if ((*at)->size != size)
		return -EINVAL;
	c->stats.hits++;
	*out = unlink_item(c, at);
	return 0;
}

int cold_take(struct cold *c, uint64_t key, const struct iovec *out, unsigned n)
{
	cleanup_free struct cold_scratch *s = malloc(sizeof(*s));
	struct cold_item *item;
	int r = s ? claim_item(c, key, iov_bytes(out, n), &item) : -ENOMEM;

	if (r)
		return r;
	r = unpack(c, item, out, s);
	scoped_lock(&c->lock);
	free_item(c, item);
	return r;
}

void cold_drop(struct cold *c, uint64_t key)
{
	scoped_lock(&c->lock);
	drop_item(c, key);
}

void cold_stats(struct cold *c, struct cold_stats *out)
{
	scoped_lock(&c->lock);
	*out = c->stats;
	out->used = arena_used(c->arena) + c->books;
}

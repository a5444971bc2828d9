/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"

enum {
	CHUNK = 2 << 20,
	CHUNK_FRAMES = CHUNK / ARENA_FRAME,
	WORD_BITS = 64,
	CHUNK_WORDS = CHUNK_FRAMES / WORD_BITS,
};

/* Frames are numbered in 32 bits. */
static const uint64_t RESERVE_MAX = ((uint64_t)1 << 32) * ARENA_FRAME;

/* The lists of chunks, by the frames that a chunk can supply. */
enum list {
	LIST_NONE,  /* not opened yet, or all frames are used */
	LIST_READY, /* has free frames that are resident */
	LIST_HOLES, /* has only free frames, none of them resident */
	LIST_EMPTY, /* opened before, no frame is resident */
	LISTS,
};

/* Used frames are a subset of the resident ones. */
struct arena_chunk {
	struct arena_chunk *prev, *next; /* in arena.lists */
	uint64_t used[CHUNK_WORDS];
	uint64_t resident[CHUNK_WORDS];
	uint16_t num_used;
	uint16_t num_resident;
	enum list list;
};

struct arena {
	uint8_t *base;
	uint8_t *mapped; /* from mmap(), `mapped_size` bytes */
	uint64_t mapped_size;
	uint64_t limit; /* limit, used and resident count frames */
	uint64_t used;
	uint64_t resident;
	struct arena_chunk *chunks;
	uint64_t num_chunks;
	uint64_t num_opened; /* these are the first ones */
	struct arena_chunk *lists[LISTS];
};

static uint8_t *chunk_bytes(const struct arena *a, const struct arena_chunk *c)
{
	return a->base + (uint64_t)(c - a->chunks) * CHUNK;
}

static enum list list_of(const struct arena_chunk *c)
{
	if (c->num_resident > c->num_used)
		return LIST_READY;
	if (!c->num_resident)
		return LIST_EMPTY;
	return c->num_resident < CHUNK_FRAMES ? LIST_HOLES : LIST_NONE;
}

/* Moves a chunk to the end of the list that matches its free frames. The chunk
   at the head is used up first, while the others gather free neighbors. */
static void relist(struct arena *a, struct arena_chunk *c)
{
	enum list list = list_of(c);

	if (list == c->list)
		return;
	if (c->list != LIST_NONE)
		DL_DELETE(a->lists[c->list], c);
	if (list != LIST_NONE)
		DL_APPEND(a->lists[list], c);
	c->list = list;
}

/* --- opening chunks --- */

static uint64_t memory_of_machine(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGE_SIZE);
}

/* Reserves address space only. Core dumps and children of fork() do not contain
   it: a child would hold memory that this process frees, and copy memory that
   this process writes. */
static int reserve_addresses(struct arena *a, uint64_t bytes)
{
	uint64_t size = align_up(min_u64(bytes, RESERVE_MAX), CHUNK) + CHUNK;
	void *p = mmap(NULL, size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	madvise(p, size, MADV_DONTDUMP);
	madvise(p, size, MADV_DONTFORK);
	a->mapped = p;
	a->mapped_size = size;
	a->base = (uint8_t *)(uintptr_t)align_up((uintptr_t)p, CHUNK);
	a->num_chunks = size / CHUNK - 1;
	return 0;
}

int arena_open(uint64_t limit_bytes, struct arena **out)
{
	struct arena *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = reserve_addresses(a, max_u64(limit_bytes, memory_of_machine()));
	/* Address space may be limited, too. */
	if (r)
		r = reserve_addresses(a, limit_bytes);
	if (!r) {
		/* A large array, but its pages are not touched until a chunk is
		   opened. */
		a->chunks = calloc(a->num_chunks + 1, sizeof(*a->chunks));
		if (!a->chunks)
			r = -ENOMEM;
	}
	if (r) {
		arena_close(a);
		return r;
	}
	arena_set_limit(a, limit_bytes);
	*out = a;
	return 0;
}

void arena_close(struct arena *a)
{
	if (!a)
		return;
	if (a->mapped)
		munmap(a->mapped, a->mapped_size);
	free(a->chunks);
	free(a);
}

/* Makes a chunk usable that has no resident frame: as a huge page, which is
   resident as a whole from the first touch, or in small pages. */
static bool open_chunk(struct arena *a, struct arena_chunk *c, bool huge)
{
	uint8_t *bytes = chunk_bytes(a, c);

	if (mprotect(bytes, CHUNK, PROT_READ | PROT_WRITE))
		return false;
	madvise(bytes, CHUNK, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (huge) {
		memset(c->resident, 0xff, sizeof(c->resident));
		c->num_resident = CHUNK_FRAMES;
		a->resident += CHUNK_FRAMES;
		relist(a, c);
	}
	return true;
}

/* Returns a chunk to allocate from when no free frame is resident. There is
   one: all resident frames are used, and they are fewer than the limit. */
static struct arena_chunk *chunk_with_room(struct arena *a)
{
	bool huge = a->resident + CHUNK_FRAMES <= a->limit;
	struct arena_chunk *c = a->lists[LIST_EMPTY];

	if (!huge && a->lists[LIST_HOLES])
		return a->lists[LIST_HOLES];
	if (!c && a->num_opened == a->num_chunks)
		return a->lists[LIST_HOLES];
	if (!c)
		c = &a->chunks[a->num_opened];
	if (!open_chunk(a, c, huge))
		return NULL;
	if (c == &a->chunks[a->num_opened])
		a->num_opened++;
	return c;
}

/* --- frames --- */

static void take_frame(struct arena *a, struct arena_chunk *c, unsigned i)
{
	uint64_t bit = (uint64_t)1 << i % WORD_BITS;

	if (!(c->resident[i / WORD_BITS] & bit)) {
		c->resident[i / WORD_BITS] |= bit;
		c->num_resident++;
		a->resident++;
	}
	c->used[i / WORD_BITS] |= bit;
	c->num_used++;
	a->used++;
}

/* Takes up to n frames of a chunk: resident ones only, if it has free ones. */
static uint32_t take_frames(struct arena *a, struct arena_chunk *c,
			    uint32_t *frames, uint32_t n)
{
	uint32_t first = (uint32_t)(c - a->chunks) * CHUNK_FRAMES, taken = 0;
	bool resident = c->num_resident > c->num_used;
	uint64_t free_bits;
	unsigned i;

	for (unsigned w = 0; w < CHUNK_WORDS && taken < n; w++) {
		free_bits = ~c->used[w];
		if (resident)
			free_bits &= c->resident[w];
		for (; free_bits && taken < n; free_bits &= free_bits - 1) {
			i = w * WORD_BITS +
			    (unsigned)__builtin_ctzll(free_bits);
			take_frame(a, c, i);
			frames[taken++] = first + i;
		}
	}
	relist(a, c);
	return taken;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int arena_alloc(struct arena *a, uint32_t *frames, uint32_t n)
{
	bool ascending = true;
	uint32_t taken = 0, before;
	struct arena_chunk *c;

	if (a->used > a->limit || n > a->limit - a->used)
		return -ENOSPC;
	while (taken < n) {
		c = a->lists[LIST_READY];
		if (!c)
			c = chunk_with_room(a);
		if (!c) {
			arena_free(a, frames, taken);
			return -ENOSPC;
		}
		before = taken;
		taken += take_frames(a, c, frames + taken, n - taken);
		if (before && frames[before] < frames[before - 1])
			ascending = false;
	}
	if (!ascending)
		qsort(frames, n, sizeof(*frames), by_number);
	return 0;
}

static void return_run(struct arena *a, struct arena_chunk *c, unsigned first,
		       unsigned n)
{
	madvise(chunk_bytes(a, c) + (uint64_t)first * ARENA_FRAME,
		(uint64_t)n * ARENA_FRAME, MADV_DONTNEED);
	for (unsigned i = first; i < first + n; i++)
		c->resident[i / WORD_BITS] &= ~((uint64_t)1 << i % WORD_BITS);
	c->num_resident -= n;
	a->resident -= n;
}

static bool is_spare(const struct arena_chunk *c, unsigned i)
{
	return (c->resident[i / WORD_BITS] & ~c->used[i / WORD_BITS]) >>
		       i % WORD_BITS &
	       1;
}

/* Returns up to `surplus` free frames of a chunk to the kernel. The chunk has
   small pages from then on, because the kernel would make them huge again. */
static void return_frames(struct arena *a, struct arena_chunk *c,
			  uint64_t surplus)
{
	unsigned n;

	madvise(chunk_bytes(a, c), CHUNK, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < CHUNK_FRAMES && surplus; i += n + 1) {
		for (n = 0; n < surplus && i + n < CHUNK_FRAMES; n++) {
			if (!is_spare(c, i + n))
				break;
		}
		if (n)
			return_run(a, c, i, n);
		surplus -= n;
	}
	relist(a, c);
}

static void trim(struct arena *a)
{
	while (a->resident > a->limit && a->lists[LIST_READY])
		return_frames(a, a->lists[LIST_READY], a->resident - a->limit);
}

void arena_free(struct arena *a, const uint32_t *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct arena_chunk *c = &a->chunks[frames[i] / CHUNK_FRAMES];
		unsigned in = frames[i] % CHUNK_FRAMES;

		c->used[in / WORD_BITS] &= ~((uint64_t)1 << in % WORD_BITS);
		c->num_used--;
		a->used--;
		relist(a, c);
	}
	trim(a);
}

void *arena_at(const struct arena *a, uint32_t frame)
{
	return a->base + (uint64_t)frame * ARENA_FRAME;
}

uint64_t arena_used(const struct arena *a)
{
	return a->used * ARENA_FRAME;
}

uint64_t arena_limit(const struct arena *a)
{
	return a->limit * ARENA_FRAME;
}

uint64_t arena_resident(const struct arena *a)
{
	return a->resident * ARENA_FRAME;
}

void arena_set_limit(struct arena *a, uint64_t bytes)
{
	a->limit = min_u64(bytes / ARENA_FRAME, a->num_chunks * CHUNK_FRAMES);
	trim(a);
}

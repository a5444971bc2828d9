/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/arena.h"
#include "tests/unit/t.h"
#include "tests/unit/vm_flags.h"

enum { CHUNK = 512, MIB = 1 << 20 };

/* Resident bytes of the arena, according to the kernel. */
static uint64_t really_resident(const struct arena *a, uint64_t bytes)
{
	uint64_t pages = bytes / ARENA_FRAME, n = 0;
	unsigned char *there = malloc(pages);

	CHECK(there);
	CHECK(!mincore(arena_at(a, 0), bytes, there));
	for (uint64_t i = 0; i < pages; i++)
		n += there[i] & 1;
	free(there);
	return n * ARENA_FRAME;
}

static void touch(struct arena *a, const uint32_t *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memset(arena_at(a, frames[i]), (int)frames[i] & 0xff,
		       ARENA_FRAME);
}

static void check_touched(struct arena *a, const uint32_t *frames, uint32_t n)
{
	const uint8_t *bytes;

	for (uint32_t i = 0; i < n; i++) {
		bytes = arena_at(a, frames[i]);
		CHECK(bytes[0] == (frames[i] & 0xff));
		CHECK(!memcmp(bytes, bytes + 1, ARENA_FRAME - 1));
	}
}

static bool is_run(const uint32_t *frames, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (frames[i] != frames[i - 1] + 1)
			return false;
	}
	return true;
}

static void frames_are_neighbours_and_memory(void)
{
	uint32_t frames[4 * CHUNK];
	struct arena *a;

	CHECK(!arena_open(8 * MIB, &a));
	CHECK(arena_limit(a) == 8 * MIB && !arena_used(a));
	CHECK(!arena_resident(a));
	CHECK(!arena_alloc(a, frames, 0));
	CHECK(!arena_alloc(a, frames, 3));
	CHECK(arena_used(a) == 3 * ARENA_FRAME);
	CHECK(arena_resident(a) == 2 * MIB);
	CHECK(!arena_alloc(a, frames + 3, 4 * CHUNK - 3));
	CHECK(is_run(frames, 4 * CHUNK));
	CHECK((uintptr_t)arena_at(a, frames[0]) % (2 * MIB) == 0);
	touch(a, frames, 4 * CHUNK);
	check_touched(a, frames, 4 * CHUNK);
	CHECK(arena_resident(a) == 8 * MIB);
	arena_close(a);
	arena_close(NULL);
}

static void the_limit_is_hard(void)
{
	uint32_t frames[CHUNK + 1];
	struct arena *a;

	CHECK(!arena_open(2 * MIB + ARENA_FRAME - 1, &a));
	CHECK(arena_limit(a) == 2 * MIB);
	CHECK(arena_alloc(a, frames, CHUNK + 1) == -ENOSPC);
	CHECK(!arena_used(a));
	CHECK(!arena_alloc(a, frames, CHUNK));
	CHECK(arena_alloc(a, frames + CHUNK, 1) == -ENOSPC);
	arena_free(a, frames + 7, 1);
	CHECK(!arena_alloc(a, frames + 7, 1) && frames[7] == 7);
	arena_close(a);
	CHECK(!arena_open(0, &a));
	CHECK(arena_alloc(a, frames, 1) == -ENOSPC);
	arena_close(a);
}

/* A part of a chunk must not make all of it resident. */
static void the_last_part_is_of_small_pages(void)
{
	const uint64_t limit = 2 * MIB + 10 * ARENA_FRAME;
	uint32_t frames[CHUNK + 10];
	struct arena *a;

	CHECK(!arena_open(limit, &a));
	CHECK(!arena_alloc(a, frames, CHUNK + 10));
	touch(a, frames, CHUNK + 10);
	CHECK(arena_resident(a) == limit);
	CHECK(really_resident(a, 4 * MIB) <= limit);
	arena_close(a);
	CHECK(!arena_open(3 * ARENA_FRAME, &a));
	CHECK(!arena_alloc(a, frames, 1));
	touch(a, frames, 1);
	CHECK(arena_resident(a) == ARENA_FRAME);
	CHECK(really_resident(a, 2 * MIB) == ARENA_FRAME);
	arena_close(a);
}

static void blocks_freed_in_order_merge(void)
{
	enum { N = 4 * CHUNK, PART = 64 };
	uint32_t frames[N];
	struct arena *a;

	CHECK(!arena_open((uint64_t)N * ARENA_FRAME, &a));
	CHECK(!arena_alloc(a, frames, N));
	arena_free(a, frames, N);
	CHECK(!arena_used(a));
	for (uint32_t i = 0; i < N; i += PART) {
		CHECK(!arena_alloc(a, frames + i, PART));
		CHECK(is_run(frames + i, PART));
	}
	arena_free(a, frames + PART, 2 * PART);
	CHECK(!arena_alloc(a, frames, 2 * PART) && is_run(frames, 2 * PART));
	arena_close(a);
}

static void a_lower_limit_gives_memory_back(void)
{
	enum { N = 4 * CHUNK };
	uint32_t frames[N];
	struct arena *a;

	CHECK(!arena_open(8 * MIB, &a));
	CHECK(!arena_alloc(a, frames, N));
	touch(a, frames, N);
	arena_free(a, frames + 100, 1000);
	CHECK(arena_resident(a) == 8 * MIB);
	arena_set_limit(a, 6 * MIB);
	CHECK(arena_limit(a) == 6 * MIB && arena_resident(a) == 6 * MIB);
	CHECK(really_resident(a, 8 * MIB) <= 6 * MIB);
	/* Less than what is used: the rest goes as it is freed. */
	arena_set_limit(a, MIB);
	CHECK(arena_resident(a) == (N - 1000) * ARENA_FRAME);
	CHECK(arena_alloc(a, frames + 100, 1) == -ENOSPC);
	arena_free(a, frames, 100);
	check_touched(a, frames + 1100, N - 1100);
	arena_free(a, frames + 1100, N - 1100);
	CHECK(arena_resident(a) == MIB && !arena_used(a));
	CHECK(really_resident(a, 8 * MIB) <= MIB);
	CHECK(!arena_alloc(a, frames, MIB / ARENA_FRAME));
	touch(a, frames, MIB / ARENA_FRAME);
	arena_set_limit(a, 0);
	arena_free(a, frames, MIB / ARENA_FRAME);
	CHECK(!arena_resident(a) && !really_resident(a, 8 * MIB));
	arena_close(a);
}

static void a_higher_limit_is_used(void)
{
	uint32_t frames[4 * CHUNK];
	struct arena *a;

	CHECK(!arena_open(MIB, &a));
	CHECK(arena_alloc(a, frames, 4 * CHUNK) == -ENOSPC);
	arena_set_limit(a, 8 * MIB);
	CHECK(!arena_alloc(a, frames, 4 * CHUNK));
	touch(a, frames, 4 * CHUNK);
	check_touched(a, frames, 4 * CHUNK);
	arena_close(a);
}

enum { ITEMS = 300, ITEM_MAX = 40 };

struct item {
	uint32_t frames[ITEM_MAX];
	uint32_t n;
};

static void replace(struct arena *a, struct item *item, uint32_t n)
{
	check_touched(a, item->frames, item->n);
	arena_free(a, item->frames, item->n);
	item->n = 0;
	if (arena_alloc(a, item->frames, n))
		return;
	item->n = n;
	for (uint32_t i = 1; i < n; i++)
		CHECK(item->frames[i] > item->frames[i - 1]);
	touch(a, item->frames, n);
}

/* Every frame has one owner, whatever happens to the limit. */
static void frames_are_never_shared(void)
{
	struct item *items = calloc(ITEMS, sizeof(*items));
	const uint64_t most = 16 * MIB;
	struct rng rng = { .key = 4 };
	uint64_t used;
	struct arena *a;

	CHECK(items && !arena_open(most, &a));
	for (unsigned step = 0; step < 20000; step++) {
		replace(a, &items[rng_next(&rng) % ITEMS],
			1 + rng_next(&rng) % ITEM_MAX);
		if (step % 97 == 0)
			arena_set_limit(a, rng_next(&rng) % most);
		used = 0;
		for (unsigned i = 0; i < ITEMS; i++)
			used += items[i].n;
		CHECK(arena_used(a) == used * ARENA_FRAME);
		CHECK(arena_resident(a) <=
		      max_u64(arena_limit(a), arena_used(a)));
		if (step % 1000 == 0)
			CHECK(really_resident(a, most) <= arena_resident(a));
	}
	free(items);
	arena_close(a);
}

/* It would keep what the parent frees, and copy what the parent writes. */
static void a_child_gets_none_of_it(void)
{
	uint32_t frame;
	struct arena *a;

	CHECK(!arena_open(8 * MIB, &a));
	CHECK(!arena_alloc(a, &frame, 1));
	CHECK(vm_has_flag(arena_at(a, frame), " dc"));
	arena_close(a);
}

int main(void)
{
	frames_are_neighbours_and_memory();
	the_limit_is_hard();
	the_last_part_is_of_small_pages();
	blocks_freed_in_order_merge();
	a_lower_limit_gives_memory_back();
	a_higher_limit_is_used();
	frames_are_never_shared();
	a_child_gets_none_of_it();
	return 0;
}

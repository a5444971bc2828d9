/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/scratch.h"

#include <string.h>
#include <sys/mman.h>

#include "tests/unit/t.h"

enum { PAGE = 4096, UNIT = BUFFER_UNIT, PAGES = 6 * UNIT / PAGE };

static unsigned count_resident(const struct buffer *b)
{
	static unsigned char in_memory[PAGES];
	unsigned n = 0;

	CHECK(b->capacity == 6 * UNIT);
	CHECK(!mincore(b->bytes, b->capacity, in_memory));
	for (unsigned i = 0; i < PAGES; i++)
		n += in_memory[i] & 1;
	return n;
}

/* Reserves six units and fills the first `filled` of them. */
static struct buffer make(int value, unsigned filled)
{
	struct buffer b = { .bytes = NULL };

	CHECK(!buffer_reserve(&b, 5 * UNIT));
	CHECK((uintptr_t)b.bytes % UNIT == 0);
	memset(b.bytes, value, (size_t)filled * UNIT);
	return b;
}

/* Compares neighbors, because a loop is slow with the thread sanitizer. */
static bool has(const struct buffer *b, unsigned from, unsigned to, int value)
{
	const uint8_t *bytes = b->bytes + (size_t)from * UNIT;
	size_t size = (size_t)(to - from) * UNIT;

	return bytes[0] == value && !memcmp(bytes, bytes + 1, size - 1);
}

static void an_end_moves_without_a_copy(void)
{
	struct buffer a = make(1, 2), b = make(2, 6);

	CHECK(count_resident(&a) == PAGES / 3 && count_resident(&b) == PAGES);
	buffer_move_end(&a, &b, UNIT + 1);
	CHECK(count_resident(&a) == PAGES && count_resident(&b) == PAGES / 3);
	CHECK(has(&a, 0, 2, 1) && has(&a, 2, 6, 2));
	CHECK(has(&b, 0, 2, 2) && has(&b, 2, 6, 0));
	memset(b.bytes, 3, 6 * UNIT);
	CHECK(has(&a, 0, 2, 1) && has(&a, 2, 6, 2));
	buffer_fini(&a);
	CHECK(has(&b, 0, 6, 3));
	buffer_fini(&b);
}

/* An end goes around as the memory of batches does. */
static void an_end_moves_any_number_of_times(void)
{
	struct buffer b[3] = { make(1, 6), make(2, 1), make(3, 1) };

	for (unsigned i = 0; i < 100; i++) {
		struct buffer *from = &b[i % 3], *to = &b[(i + 1) % 3];

		memset(from->bytes + UNIT, (int)(i % 256), 5 * UNIT);
		buffer_move_end(to, from, UNIT);
		CHECK(has(to, 1, 6, (int)(i % 256)));
		CHECK(count_resident(to) == PAGES);
		CHECK(count_resident(from) == PAGES / 6);
	}
	for (unsigned i = 0; i < 3; i++)
		buffer_fini(&b[i]);
}

/* A part of an end that has moved, and buffers of other sizes, lose pages. */
static void other_ends_are_freed(void)
{
	struct buffer a = make(1, 6), b = make(2, 6), small = { .bytes = NULL };

	buffer_move_end(&a, &b, 4 * UNIT);
	buffer_move_end(&b, &a, 3 * UNIT);
	CHECK(has(&a, 0, 3, 1) && has(&a, 3, 6, 0));
	CHECK(has(&b, 0, 4, 2));
	buffer_move_end(&b, &a, 5 * UNIT);
	CHECK(!buffer_reserve(&small, UNIT));
	memset(small.bytes, 4, small.capacity);
	buffer_move_end(&a, &small, UNIT);
	CHECK(has(&small, 0, 1, 4) && has(&small, 1, 2, 0));
	buffer_move_end(&a, &small, 2 * UNIT);
	CHECK(has(&small, 0, 1, 4));
	buffer_fini(&a);
	buffer_fini(&b);
	buffer_fini(&small);
	buffer_move_end(&small, &a, 0);
}

int main(void)
{
	an_end_moves_without_a_copy();
	an_end_moves_any_number_of_times();
	other_ends_are_freed();
	return 0;
}

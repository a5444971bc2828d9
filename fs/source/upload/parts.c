/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/upload/parts.h"

#include "fs/base/util/bytes.h"

enum {
	/* Parts of one size. */
	STEP = 1000,
	/* 4 GiB: a part of S3 has at most 5 GiB. */
	DOUBLINGS_MAX = 9,
	FRONT_PART = 64 << 20,
	/* Bytes on the way: several connections of a distant server. */
	WINDOW = 48 << 20,
	WINDOW_MIN = 2,
	/* An object of a known size has at most so many parts. */
	EQUAL_MAX = 9000,
};

uint64_t parts_size(unsigned i)
{
	return (uint64_t)PARTS_FIRST << min_u64(i / STEP, DOUBLINGS_MAX);
}

unsigned parts_window(uint64_t size)
{
	return (unsigned)max_u64(WINDOW / size, WINDOW_MIN);
}

unsigned parts_of_front(uint64_t size)
{
	uint64_t n = size / FRONT_PART;

	return (unsigned)min_u64(max_u64(n, 1), PARTS_FRONT_MAX);
}

uint64_t parts_equal(uint64_t size)
{
	uint64_t least = size / EQUAL_MAX + 1;

	/* Whole MiB, which are easy to recognize in a listing. */
	return max_u64(PARTS_FIRST, align_up(least, 1 << 20));
}

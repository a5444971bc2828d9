/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of the parts of multipart uploads: fs/source/upload/parts.h. */
#include "fs/source/upload/parts.h"

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static const uint64_t MiB = 1 << 20, GiB = 1 << 30, TiB = (uint64_t)1 << 40;

/* The largest object of S3 fits, whatever its front takes away. */
static void ten_thousand_parts_hold_the_largest_object(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PARTS_MAX - PARTS_FRONT_MAX; i++) {
		uint64_t size = parts_size(i);

		CHECK(size >= PARTS_SMALLEST && size <= 5 * GiB);
		CHECK(!i || size >= parts_size(i - 1));
		sum += size;
	}
	CHECK(sum > 5 * TiB);
	CHECK(parts_size(UINT32_MAX) <= 5 * GiB);
}

/* Parts in memory: those on their way, and the one that is filled. */
static void memory_is_small_for_small_objects(void)
{
	uint64_t sum = 0;

	CHECK(parts_size(0) == PARTS_FIRST);
	for (unsigned i = 0; sum < TiB; i++) {
		uint64_t size = parts_size(i);
		uint64_t memory = (parts_window(size) + 1) * size;

		CHECK(parts_window(size) >= 2);
		CHECK(memory <= 64 * MiB || sum > 15 * GiB);
		CHECK(memory <= 400 * MiB || sum > 230 * GiB);
		sum += size;
	}
}

static void front_takes_few_parts(void)
{
	CHECK(parts_of_front(0) == 1 && parts_of_front(8 * MiB) == 1);
	CHECK(parts_of_front(1 * GiB) == 16);
	CHECK(parts_of_front(UINT64_MAX) == PARTS_FRONT_MAX);
	/* A front of 900 GiB has 10^10 samples. */
	for (uint64_t size = 1; size < 900 * GiB; size *= 2)
		CHECK(size / parts_of_front(size) <= 5 * GiB);
}

static void equal_parts_hold_an_object_of_any_size(void)
{
	for (uint64_t size = 1; size < 40 * TiB; size = size * 3 + 1) {
		uint64_t each = parts_equal(size);

		CHECK(each >= PARTS_FIRST && each % MiB == 0);
		CHECK((size + each - 1) / each <= PARTS_MAX);
		CHECK(each <= 5 * GiB);
	}
}

int main(void)
{
	ten_thousand_parts_hold_the_largest_object();
	memory_is_small_for_small_objects();
	front_takes_few_parts();
	equal_parts_hold_an_object_of_any_size();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/bins.h"

#include <float.h>
#include <math.h>

#include "fs/util/bytes.h"
#include "tests/unit/t.h"

static uint64_t sum(const struct bins *b)
{
	uint64_t n = 0;

	CHECK(b->n >= 1 && b->n <= BINS_MAX);
	for (size_t i = 0; i < b->n; i++)
		n += b->count[i];
	return n;
}

/* 0 to 999: bins of 50. */
static void test_even(void)
{
	double v[1000];
	struct bins b;

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		v[i] = (double)i;
	CHECK(bins_fill(&b, v, ARRAY_LEN(v), true));
	CHECK(b.first == 0 && b.width == 50 && b.n == 20);
	CHECK(!b.more_below && !b.more_above);
	for (size_t i = 0; i < b.n; i++)
		CHECK(b.count[i] == 50);
}

/* One far away on either side takes none of the room. */
static void test_far(void)
{
	double v[1000];
	struct bins b;

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		v[i] = 0.001 * (double)i;
	v[0] = -1e9;
	v[999] = 1e9;
	CHECK(bins_fill(&b, v, ARRAY_LEN(v), false));
	CHECK(b.more_below && b.more_above && sum(&b) == 1000);
	CHECK(b.width == 0.05 && b.first == 0);
	/* If there are few values, none is an exception. */
	CHECK(bins_fill(&b, v + 990, 10, false));
	CHECK(!b.more_above && b.first + b.width * (double)b.n >= 1e9);
}

static void test_whole(void)
{
	const double v[] = { 3, 4, 4, 6 };
	struct bins b;

	CHECK(bins_fill(&b, v, ARRAY_LEN(v), true));
	CHECK(b.first == 3 && b.width == 1 && b.n == 4);
	CHECK(b.count[0] == 1 && b.count[1] == 2 && b.count[2] == 0 &&
	      b.count[3] == 1);
}

/* Each value is counted once, however large it is. */
static void test_extremes(void)
{
	const double pairs[][2] = {
		{ 0, DBL_TRUE_MIN },	    { 1, nextafter(1, 2) },
		{ -DBL_MAX, DBL_MAX },	    { DBL_MAX / 2, DBL_MAX },
		{ 1e300, 1.0001e300 },	    { -1e-300, 1e300 },
		{ 1e15, 1e15 + 1 },	    { -DBL_MIN, DBL_MIN },
		{ -9.3e18, 9.3e18 },	    { 0.1, 0.3 },
		{ -DBL_MAX, -DBL_MAX / 2 },
	};
	struct bins b;

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (bins_fill(&b, pairs[i], 2, i % 2))
			CHECK(sum(&b) == 2);
	CHECK(bins_fill(&b, pairs[9], 2, false));
	CHECK(!bins_fill(&b, pairs[0], 0, false));
	CHECK(!bins_fill(&b, (double[]){ 7, 7, 7 }, 3, true));
}

int main(void)
{
	test_even();
	test_far();
	test_whole();
	test_extremes();
	return 0;
}

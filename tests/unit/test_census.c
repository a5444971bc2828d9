/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/census.h"

#include "fs/util/rng.h"
#include "tests/unit/t.h"

static void check_order(const struct census_count *c, size_t n)
{
	for (size_t i = 1; i < n; i++)
		CHECK(c[i - 1].value < c[i].value);
}

/* Ten values in random order, more often than it keeps waiting. */
static void test_few(void)
{
	const struct census_count *counts;
	uint64_t truth[10] = { 0 };
	struct rng rng = { .key = 1 };
	struct census *c;
	size_t n;

	CHECK(!census_open(&c));
	CHECK(!census_end(c));
	census_counts(c, &n);
	CHECK(n == 0);
	for (int i = 0; i < 3 * CENSUS_MAX + 5; i++) {
		uint64_t v = rng_next(&rng) % 10;

		truth[v]++;
		CHECK(!census_add(c, (int64_t)v - 5));
	}
	CHECK(!census_end(c) && !census_end(c));
	counts = census_counts(c, &n);
	CHECK(n == 10);
	check_order(counts, n);
	for (size_t i = 0; i < n; i++)
		CHECK(counts[i].value == (int64_t)i - 5 &&
		      counts[i].n == truth[i]);
	census_close(c);
}

/* As many as there may be, and one more. */
static void test_many(void)
{
	const struct census_count *counts;
	struct census *c;
	size_t n;

	CHECK(!census_open(&c));
	for (int64_t i = 0; i < 2 * CENSUS_MAX; i++)
		CHECK(!census_add(c, INT64_MAX - i % CENSUS_MAX));
	CHECK(!census_end(c));
	counts = census_counts(c, &n);
	CHECK(n == CENSUS_MAX && counts[n - 1].value == INT64_MAX);
	check_order(counts, n);
	for (size_t i = 0; i < n; i++)
		CHECK(counts[i].n == 2);
	CHECK(!census_add(c, INT64_MIN));
	CHECK(!census_end(c));
	CHECK(!census_counts(c, &n) && n == 0);
	CHECK(!census_add(c, 0) && !census_end(c));
	CHECK(!census_counts(c, &n) && n == 0);
	census_close(c);
}

int main(void)
{
	test_few();
	test_many();
	census_close(NULL);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/histogram.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "fs/base/metrics/counters.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { MANY = 100000, THREADS = 8 };

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void every_time_is_in_its_bucket(void)
{
	for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		uint64_t from = histogram_bound(i), to = histogram_bound(i + 1);

		CHECK(from < to);
		CHECK(histogram_bucket(from) == i);
		CHECK(histogram_bucket(to - 1) == i);
		/* The middle is off by an eighth at most. */
		CHECK(to - from == 64 || to - from <= from / 4);
	}
	CHECK(histogram_bound(0) == 0);
	CHECK(histogram_bucket(UINT64_MAX) == HISTOGRAM_BUCKETS - 1);
	/* Nine minutes. */
	CHECK(histogram_bound(HISTOGRAM_BUCKETS) > UINT64_C(540000000000));
}

/* Times of all sizes, against those that are sorted. */
static void quantiles_are_off_by_an_eighth_at_most(void)
{
	static uint64_t values[MANY], counts[HISTOGRAM_BUCKETS];
	static const double shares[] = { 0.01, 0.5, 0.9, 0.99, 1 };
	uint64_t x = 1;

	for (size_t i = 0; i < MANY; i++) {
		x = rng_mix(x + i);
		values[i] = (x >> 24) >> (x % 30);
		counts[histogram_bucket(values[i])]++;
	}
	qsort(values, MANY, sizeof(values[0]), by_value);
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		double want = (double)values[(size_t)(shares[i] * MANY) - 1];
		double got = (double)histogram_quantile(counts, shares[i]);

		if (want >= (double)histogram_bound(HISTOGRAM_BUCKETS - 1))
			continue;
		CHECK(got - want <= 0.125 * want + 32);
		CHECK(want - got <= 0.125 * want + 32);
	}
}

static void few_have_quantiles_too(void)
{
	uint64_t counts[HISTOGRAM_BUCKETS] = { 0 }, ms = 1000000;

	CHECK(histogram_quantile(counts, 0.5) == 0);
	counts[histogram_bucket(ms)] = 1;
	for (double share = 0; share <= 1; share += 0.25) {
		uint64_t got = histogram_quantile(counts, share);

		CHECK(got >= ms - ms / 8 && got <= ms + ms / 8);
	}
	counts[histogram_bucket(100 * ms)] = 1;
	CHECK(histogram_quantile(counts, 0.5) < 2 * ms);
	CHECK(histogram_quantile(counts, 0.51) > 80 * ms);
}

struct counting {
	struct counters shared;
	struct counters own[THREADS];
	atomic_uint next;
};

static void *count(void *arg)
{
	struct counting *c = arg;
	struct counters *own = &c->own[atomic_fetch_add(&c->next, 1)];

	for (unsigned i = 0; i < MANY; i++) {
		counters_item(&c->shared, 3, 1000);
		counters_items_own(own, 2, 6, 2000);
	}
	return NULL;
}

/* Nothing is lost, and the two ways count the same. */
static void threads_count_together(void)
{
	static struct counting c;
	struct counters_sum shared = { .items = 0 }, own = { .items = 0 };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, count, &c));
	counters_sum(&shared, &c.shared);
	CHECK(shared.items <= THREADS * MANY);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	memset(&shared, 0, sizeof(shared));
	counters_sum(&shared, &c.shared);
	for (int i = 0; i < THREADS; i++)
		counters_sum(&own, &c.own[i]);
	CHECK(shared.items == THREADS * MANY);
	CHECK(shared.bytes == 3 * shared.items);
	CHECK(shared.busy_ns == 1000 * shared.items);
	CHECK(shared.times[histogram_bucket(1000)] == shared.items);
	CHECK(own.items == 2 * shared.items && own.bytes == 2 * shared.bytes);
	CHECK(own.busy_ns == 2 * shared.busy_ns);
	CHECK(own.times[histogram_bucket(1000)] == own.items);
}

int main(void)
{
	every_time_is_in_its_bucket();
	quantiles_are_off_by_an_eighth_at_most();
	few_have_quantiles_too();
	threads_count_together();
	return 0;
}

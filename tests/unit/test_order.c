/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static struct spec spec_of(const char *text, uint64_t samples)
{
	const struct spec_facts facts = { .samples = samples,
					  .data_bytes = samples << 14 };
	char why[SPEC_WHY_SIZE];
	struct spec spec;

	CHECK(!spec_parse(text, &facts, &spec, why));
	return spec;
}

static void rows_are_found_by_number_and_by_name(void)
{
	const struct order_row *row;
	size_t n = 0;

	for (; (row = order_row_at(n)); n++) {
		CHECK(order_by_id(row->order) == row);
		CHECK(order_by_name(row->name, strlen(row->name)) == row);
	}
	CHECK(n == 5);
	CHECK(!order_by_name("rand", 4) && !order_by_name("", 0));
	CHECK(!order_by_name("random_", 7));
}

/* Every sample of [first, first + n) once, and back to its position. */
static void check_bijection(const struct spec *spec, uint64_t epoch)
{
	const struct order o = order_init(spec, epoch);
	uint64_t n = spec->end - spec->first, id;
	uint8_t *seen = calloc(n + 1, 1);

	CHECK(seen);
	for (uint64_t i = 0; i < n; i++) {
		id = order_sample(&o, i);
		CHECK(id >= spec->first && id < spec->end);
		CHECK(!seen[id - spec->first]);
		CHECK(order_position(&o, id, 0) == i);
		seen[id - spec->first] = 1;
	}
	free(seen);
}

static void every_order_gives_each_sample_once(void)
{
	char text[128];

	for (size_t row = 0; order_row_at(row); row++) {
		for (uint64_t n = 1; n <= 130; n++) {
			struct spec spec;

			if (order_row_at(row)->draws)
				continue;
			snprintf(text, sizeof(text), "order=%s,seed=%llu",
				 order_row_at(row)->name,
				 (unsigned long long)n * 7919);
			spec = spec_of(text, n);
			check_bijection(&spec, n % 5);
		}
	}
}

static void blocks_and_windows_of_any_size_give_each_sample_once(void)
{
	static const uint64_t sizes[] = {
		1, 2, 3, 7, 16, 50, 99, 100, 101, 1000, (uint64_t)1 << 40
	};
	static const uint64_t counts[] = { 1, 2, 50, 99, 100, 101, 1000 };
	struct spec spec;
	char text[128];

	for (size_t b = 0; b < ARRAY_LEN(sizes); b++) {
		for (size_t w = 0; w < ARRAY_LEN(sizes); w++) {
			snprintf(text, sizeof(text),
				 "order=quasi_random,block=%llu,window=%llu",
				 (unsigned long long)sizes[b],
				 (unsigned long long)sizes[w]);
			for (size_t n = 0; n < ARRAY_LEN(counts); n++) {
				spec = spec_of(text, counts[n]);
				check_bijection(&spec, 1);
			}
		}
	}
}

static void buckets_of_any_size_give_each_sample_once(void)
{
	static const uint64_t sizes[] = { 1,  2,   3,	 7,
					  99, 100, 1000, (uint64_t)1 << 40 };
	static const uint64_t counts[] = { 1, 2, 50, 99, 100, 101, 1000 };
	struct spec spec;
	char text[128];

	for (size_t b = 0; b < ARRAY_LEN(sizes); b++) {
		for (size_t w = 0; w < ARRAY_LEN(sizes); w++) {
			snprintf(text, sizeof(text),
				 "order=bucketed,batch=%llu,bucket=%llu",
				 (unsigned long long)(b % 7 + 1) * 3,
				 (unsigned long long)sizes[w]);
			for (size_t n = 0; n < ARRAY_LEN(counts); n++) {
				spec = spec_of(text, counts[n]);
				check_bijection(&spec, b);
			}
		}
	}
}

/* If samples are ordered by length, those of a batch have similar lengths. Each
   epoch has other batches, and leaves out other samples. */
static void batches_are_of_one_bucket(void)
{
	enum { N = 1003, BATCH = 10, BUCKET = 50 };
	struct spec spec = spec_of("order=bucketed,batch=10,bucket=50", N);
	uint64_t first[2], left_out[2];

	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		struct order o = order_init(&spec, epoch);

		for (uint64_t b = 0; b < N / BATCH; b++) {
			uint64_t least = UINT64_MAX, most = 0;

			for (uint64_t i = 0; i < BATCH; i++) {
				uint64_t s = order_sample(&o, b * BATCH + i);

				least = min_u64(least, s);
				most = max_u64(most, s);
			}
			/* A batch may lie in two buckets, around a cut. */
			CHECK(most - least < 2 * BUCKET + BATCH);
			if (!b)
				first[epoch] = least;
		}
		left_out[epoch] = order_sample(&o, N - 1);
	}
	CHECK(first[0] != first[1] && left_out[0] != left_out[1]);
}

static void subsets_stay_inside(void)
{
	static const char *const texts[] = {
		"subset=0-1",
		"subset=99-100",
		"subset=13-77,order=sequential",
		"subset=13-77,order=quasi_random,block=5,window=20",
		"subset=13-77,order=bucketed,batch=5,bucket=20",
	};
	struct spec spec;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		spec = spec_of(texts[i], 100);
		check_bijection(&spec, 0);
	}
}

static void positions_beyond_32_bits_are_found(void)
{
	static const char *const texts[] = {
		"order=sequential",
		"order=random,seed=3",
		"order=quasi_random,block=7,window=1000000",
		"order=quasi_random,block=5000000000,window=9000000000",
		"order=bucketed,batch=999,bucket=77777",
		("order=quasi_random,block=12345,window=77777,"
		 "subset=4294967290-1099511627775"),
	};
	const uint64_t n = (uint64_t)1 << 40;
	uint64_t range, i;

	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct spec spec = spec_of(texts[t], n);
		const struct order o = order_init(&spec, 2);

		range = spec.end - spec.first;
		for (uint64_t k = 0; k < 1000; k++) {
			i = k < 10 ? range - 1 - k : rng_mix(k) % range;
			CHECK(order_position(&o, order_sample(&o, i), 0) == i);
			i += spec.first;
			CHECK(order_sample(&o, order_position(&o, i, 0)) == i);
		}
	}
}

static void check_run(const struct order *o, uint64_t sample, uint64_t first,
		      uint64_t end)
{
	uint64_t run_first, run_end;

	order_run(o, sample, &run_first, &run_end);
	CHECK(run_first == first && run_end == end);
}

static void runs_are_used_together(void)
{
	struct spec spec = spec_of("order=sequential,subset=13-77", 100);
	struct order o = order_init(&spec, 0);

	check_run(&o, 13, 13, 77);
	check_run(&o, 76, 76, 77);
	spec = spec_of("order=random,subset=13-77", 100);
	o = order_init(&spec, 0);
	check_run(&o, 13, 13, 14);
	check_run(&o, 76, 76, 77);
	spec = spec_of("order=quasi_random,block=10,window=20,subset=13-77",
		       100);
	o = order_init(&spec, 0);
	check_run(&o, 13, 13, 23);
	check_run(&o, 22, 13, 23);
	check_run(&o, 72, 63, 73);
	check_run(&o, 73, 73, 77);
	spec = spec_of("order=quasi_random,block=1000000,window=20", 100);
	o = order_init(&spec, 0);
	check_run(&o, 50, 0, 100);
}

static void check_golden(const char *text, uint64_t samples, uint64_t epoch,
			 const uint64_t *golden, size_t n)
{
	const struct spec spec = spec_of(text, samples);
	const struct order o = order_init(&spec, epoch);

	for (size_t i = 0; i < n; i++)
		CHECK(order_sample(&o, i) == golden[i]);
}

/* From tests/e2e/orders.py. */
static void orders_are_as_specified(void)
{
	static const uint64_t ten[] = { 2, 1, 3, 5, 6, 4, 8, 7, 9, 0 };
	static const uint64_t thousand[] = { 968, 979, 789, 379, 969, 328,
					     701, 935, 188, 44,	 256, 321 };
	static const uint64_t quasi[] = { 19, 16, 18, 17, 8, 10, 9,  4,
					  15, 12, 11, 14, 5, 6,	 13, 2,
					  7,  3,  22, 20, 0, 1,	 21 };
	static const uint64_t part[] = { 139, 95,  93,	71, 73, 67, 94, 144,
					 143, 138, 141, 50, 68, 69, 92 };

	check_golden("", 10, 0, ten, ARRAY_LEN(ten));
	check_golden("seed=5", 1000, 3, thousand, ARRAY_LEN(thousand));
	check_golden("order=quasi_random,seed=1,block=4,window=9", 23, 2, quasi,
		     ARRAY_LEN(quasi));
	check_golden("order=quasi_random,seed=18446744073709551615,block=8,"
		     "window=32,subset=50-150",
		     200, 7, part, ARRAY_LEN(part));
}

static unsigned agreements(const char *a, uint64_t epoch_a, const char *b,
			   uint64_t epoch_b)
{
	const struct spec x = spec_of(a, 1000), y = spec_of(b, 1000);
	const struct order p = order_init(&x, epoch_a);
	const struct order q = order_init(&y, epoch_b);
	unsigned n = 0;

	for (uint64_t i = 0; i < 1000; i++)
		n += order_sample(&p, i) == order_sample(&q, i);
	return n;
}

static void seeds_and_epochs_have_nothing_in_common(void)
{
	CHECK(agreements("seed=1", 0, "seed=1", 0) == 1000);
	CHECK(agreements("seed=1", 0, "seed=2", 0) < 12);
	CHECK(agreements("seed=1", 0, "seed=1", 1) < 12);
	CHECK(agreements("seed=1", 0, "seed=0", 1) < 12);
	CHECK(agreements("seed=1,order=quasi_random", 0,
			 "seed=1,order=quasi_random", 1) < 30);
}

static void batch_size_and_drop_last_do_not_change_the_order(void)
{
	CHECK(agreements("batch=7", 3, "batch=256,drop_last=0", 3) == 1000);
}

/* Positions of one window come from few blocks: that is what reads once. */
static void a_window_touches_only_its_blocks(void)
{
	enum { N = 10000, BLOCK = 20, WINDOW = 1000 };
	const struct spec spec =
		spec_of("order=quasi_random,block=20,window=1000,seed=9", N);
	const struct order o = order_init(&spec, 0);
	uint8_t seen[N / BLOCK];
	unsigned blocks;

	for (uint64_t start = 0; start < N; start += WINDOW) {
		memset(seen, 0, sizeof(seen));
		for (uint64_t i = 0; i < WINDOW; i++)
			seen[order_sample(&o, start + i) / BLOCK] = 1;
		blocks = 0;
		for (size_t b = 0; b < sizeof(seen); b++)
			blocks += seen[b];
		CHECK(blocks == WINDOW / BLOCK);
	}
}

static void the_short_block_is_last(void)
{
	const struct spec spec =
		spec_of("order=quasi_random,block=10,window=1", 95);
	const struct order o = order_init(&spec, 0);

	for (uint64_t i = 0; i < 90; i++)
		CHECK(order_sample(&o, i) < 90);
	for (uint64_t i = 90; i < 95; i++)
		CHECK(order_sample(&o, i) == i);
}

static void a_billion_samples_cost_nothing(void)
{
	const uint64_t n = (uint64_t)1 << 36;
	const char *const texts[] = { "order=random",
				      "order=quasi_random,window=1000000" };

	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct spec spec = spec_of(texts[t], n);
		const struct order o = order_init(&spec, 0);

		for (uint64_t i = 0; i < 1000; i++)
			CHECK(order_sample(&o, n - 1 - i * 31337) < n);
	}
}

int main(void)
{
	rows_are_found_by_number_and_by_name();
	every_order_gives_each_sample_once();
	blocks_and_windows_of_any_size_give_each_sample_once();
	buckets_of_any_size_give_each_sample_once();
	batches_are_of_one_bucket();
	subsets_stay_inside();
	positions_beyond_32_bits_are_found();
	runs_are_used_together();
	orders_are_as_specified();
	seeds_and_epochs_have_nothing_in_common();
	batch_size_and_drop_last_do_not_change_the_order();
	a_window_touches_only_its_blocks();
	the_short_block_is_last();
	a_billion_samples_cost_nothing();
	return 0;
}

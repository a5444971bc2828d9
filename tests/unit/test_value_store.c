/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/util/value_store.h"
#include "tests/unit/t.h"

enum { SIZE = 1 << 20 };

static struct value_store *opened(uint64_t size)
{
	struct value_store *s;

	CHECK(!value_store_open(size, &s));
	return s;
}

static struct value_store_stats stats_of(const struct value_store *s)
{
	struct value_store_stats stats;

	value_store_stats(s, &stats);
	return stats;
}

/* Bytes that no other sample has. */
static void fill(uint8_t *to, uint64_t id, uint64_t size)
{
	struct rng rng = { .key = id };

	for (uint64_t i = 0; i < size; i++)
		to[i] = (uint8_t)rng_next(&rng);
}

static bool is_filled(const uint8_t *from, uint64_t id, uint64_t size)
{
	struct rng rng = { .key = id };

	for (uint64_t i = 0; i < size; i++)
		if (from[i] != (uint8_t)rng_next(&rng))
			return false;
	return true;
}

/* 0, -ENOSPC where nothing could be taken, or value_store_put()'s. */
static int put(struct value_store *s, uint64_t id, uint64_t size)
{
	uint8_t *value = value_store_take(s, id, size);

	if (!value)
		return -ENOSPC;
	CHECK((uintptr_t)value % VALUE_STORE_ALIGN == 0);
	fill(value, id, size);
	return value_store_put(s, value);
}

static bool has(struct value_store *s, uint64_t id, uint64_t size)
{
	const void *value;

	return value_store_get(s, id, &value) == VALUE_STORE_VALUE &&
	       is_filled(value, id, size);
}

static void only_stored_values_are_found(void)
{
	static const uint64_t ids[] = { 0, 1, 64, UINT64_MAX, 1000000007 };
	struct value_store *s = opened(SIZE);
	uint64_t empty = stats_of(s).used;
	const void *value;

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CHECK(value_store_get(s, ids[i], &value) ==
		      VALUE_STORE_NOTHING);
		CHECK(!put(s, ids[i], 100 + i));
	}
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		CHECK(has(s, ids[i], 100 + i));
	CHECK(value_store_get(s, 2, &value) == VALUE_STORE_NOTHING);
	CHECK(stats_of(s).values == ARRAY_LEN(ids));
	CHECK(stats_of(s).hits == ARRAY_LEN(ids));
	CHECK(stats_of(s).size == SIZE);
	CHECK(stats_of(s).used >= empty + 5 * 100 && empty < SIZE / 50);
	value_store_close(s);
	value_store_close(NULL);
}

static void the_size_is_never_exceeded(void)
{
	struct rng rng = { .key = 1 };
	uint64_t size[4096] = { 0 }, n = 0;
	struct value_store *s = opened(SIZE);

	for (uint64_t id = 0; id < ARRAY_LEN(size); id++) {
		uint64_t want = 1 + rng_next(&rng) % 5000;

		if (put(s, id, want))
			continue;
		size[id] = want;
		n++;
		CHECK(stats_of(s).used <= SIZE);
	}
	CHECK(n > SIZE / 5000 && n < ARRAY_LEN(size));
	CHECK(stats_of(s).values == n && stats_of(s).used > SIZE - 5000);
	CHECK(!value_store_take(s, 5000, UINT64_MAX) &&
	      !value_store_take(s, 5000, UINT64_MAX - 40) &&
	      !value_store_take(s, 5000, SIZE));
	for (uint64_t id = 0; id < ARRAY_LEN(size); id++)
		CHECK(size[id] ? has(s, id, size[id]) : !has(s, id, 1));
	value_store_close(s);
}

/* More values than the index has places for: some find none near theirs. */
static void a_full_index_takes_no_more(void)
{
	struct value_store *s = opened(SIZE);
	uint64_t n = 0;

	for (uint64_t id = 0; id < 10000; id++)
		n += !put(s, id, 8);
	CHECK(n == stats_of(s).values && n >= 512 && n <= 2048);
	CHECK(stats_of(s).used < SIZE);
	for (uint64_t id = 0; id < 10000; id++)
		n -= has(s, id, 8);
	CHECK(!n);
	value_store_close(s);
}

static void released_room_is_reused(void)
{
	struct value_store *s = opened(SIZE);
	uint64_t used = stats_of(s).used;
	void *first = value_store_take(s, 1, 1000), *second;

	value_store_give(s, first);
	CHECK(stats_of(s).used == used);
	CHECK(value_store_take(s, 2, 1000) == first);
	second = value_store_take(s, 3, 1000);
	value_store_give(s, first);
	CHECK(stats_of(s).used > used + 2000);
	CHECK(second != first && !value_store_put(s, second));
	CHECK(stats_of(s).values == 1);
	value_store_close(s);
}

static void the_first_value_of_a_sample_stays(void)
{
	struct value_store *s = opened(SIZE);
	const void *found;
	void *a = value_store_take(s, 7, 10), *b = value_store_take(s, 7, 10);
	uint64_t used = stats_of(s).used;

	CHECK(!value_store_put(s, a) && value_store_put(s, b) == -EEXIST);
	CHECK(value_store_get(s, 7, &found) == VALUE_STORE_VALUE && found == a);
	CHECK(stats_of(s).values == 1 && stats_of(s).used < used);
	value_store_refuse(s, 7);
	CHECK(value_store_get(s, 7, &found) == VALUE_STORE_VALUE && found == a);
	value_store_close(s);
}

static void a_refusal_is_remembered_and_counts_for_nothing(void)
{
	struct value_store *s = opened(SIZE);
	const void *found = s;

	value_store_refuse(s, 7);
	CHECK(value_store_get(s, 7, &found) == VALUE_STORE_REFUSED &&
	      found == s);
	CHECK(stats_of(s).values == 0 && stats_of(s).hits == 0);
	CHECK(put(s, 7, 10) == -EEXIST);
	value_store_close(s);
}

static void sizes_are_from_small_to_more_than_there_is(void)
{
	struct value_store *s;

	CHECK(value_store_open(VALUE_STORE_SIZE_MIN - 1, &s) == -ENOMEM);
	CHECK(value_store_open(UINT64_MAX, &s) == -ENOMEM);
	s = opened(VALUE_STORE_SIZE_MIN);
	CHECK(!put(s, 1, 60000) && put(s, 2, 60000) == -ENOSPC);
	value_store_close(s);
	/* Nothing of it is touched. */
	s = opened((uint64_t)64 << 30);
	CHECK(!put(s, 1, 60000) && has(s, 1, 60000));
	value_store_close(s);
}

/* --- threads --- */

enum { THREADS = 4, IDS = 300, ROUNDS = 4, SIZE_MAX_OF_ID = 2000 };

static uint64_t size_of_id(uint64_t id)
{
	return 1 + id * 37 % SIZE_MAX_OF_ID;
}

struct racer {
	struct value_store *cache;
	uint64_t first;
	uint64_t hits;
	uint64_t put;
};

/* Takes up every sample, as a worker would, from one of its own on. */
static void *race(void *arg)
{
	struct racer *r = arg;
	const void *value;

	for (uint64_t i = 0; i < (uint64_t)ROUNDS * IDS; i++) {
		uint64_t id = (r->first + i) % IDS, size = size_of_id(id);

		switch (value_store_get(r->cache, id, &value)) {
		case VALUE_STORE_VALUE:
			CHECK(is_filled(value, id, size));
			r->hits++;
			break;
		case VALUE_STORE_REFUSED:
			CHECK(id % 10 == 3);
			break;
		case VALUE_STORE_NOTHING:
			if (id % 10 == 3)
				value_store_refuse(r->cache, id);
			else
				r->put += !put(r->cache, id, size);
		}
	}
	return NULL;
}

static void run_race(uint64_t size, struct value_store_stats *out)
{
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	struct value_store *s = opened(size);
	uint64_t hits = 0, values = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		/* Two of them go together. */
		racers[i] = (struct racer){ s, i / 2 * IDS / 2, 0, 0 };
		CHECK(!pthread_create(&threads[i], NULL, race, &racers[i]));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		hits += racers[i].hits;
		values += racers[i].put;
	}
	value_store_stats(s, out);
	CHECK(out->hits == hits && out->values == values);
	CHECK(out->used <= size);
	value_store_close(s);
}

static void threads_share_stored_values(void)
{
	struct value_store_stats stats;

	run_race(4 << 20, &stats);
	CHECK(stats.values == IDS - IDS / 10);
	run_race(100 << 10, &stats);
	CHECK(stats.values > 0 && stats.values < IDS / 2);
}

int main(void)
{
	only_stored_values_are_found();
	the_size_is_never_exceeded();
	a_full_index_takes_no_more();
	released_room_is_reused();
	the_first_value_of_a_sample_stays();
	a_refusal_is_remembered_and_counts_for_nothing();
	sizes_are_from_small_to_more_than_there_is();
	threads_share_stored_values();
	return 0;
}

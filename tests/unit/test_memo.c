/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the memo itself, whose allocations fail if the test demands it. */
#include <stdlib.h>

static int scarce = -1; /* allocations of the table until one fails */

static void *table_malloc(size_t size)
{
	if (!scarce)
		return NULL;
	scarce -= scarce > 0;
	return malloc(size);
}

#define uthash_malloc(size) table_malloc(size)
#include "fs/base/memory/memo.c"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

enum { THREADS = 8, SIZE = 10 };

/* Controls make(): its result, and semaphores that delay it. */
struct order {
	int result;
	sem_t *started; /* NULL: no thread waits */
	sem_t *go_on;
};

static atomic_int made, freed;

static int make(const void *arg, void **thing, uint64_t *bytes)
{
	const struct order *order = arg;

	made++;
	if (order->started) {
		sem_post(order->started);
		sem_wait(order->go_on);
	}
	if (order->result)
		return order->result;
	*thing = malloc(SIZE);
	*bytes = SIZE;
	return 0;
}

static void unmake(void *thing)
{
	freed++;
	free(thing);
}

static struct memo *new_memo(uint64_t bytes_max)
{
	struct memo *m;

	made = 0;
	freed = 0;
	CHECK(!memo_open(&(struct memo_options){ .bytes_max = bytes_max,
						 .make = make,
						 .free = unmake },
			 &m));
	return m;
}

static void *get(struct memo *m, uint64_t key)
{
	const struct order plain = { .result = 0 };
	void *thing;

	CHECK(!memo_get(m, key, &plain, &thing));
	return thing;
}

static void test_a_thing_is_made_once(void)
{
	struct memo *m = new_memo(1000);
	void *thing = get(m, 7);

	CHECK(get(m, 7) == thing && made == 1);
	CHECK(get(m, 8) != thing && made == 2);
	memo_put(m, 7);
	memo_put(m, 7);
	memo_put(m, 8);
	CHECK(get(m, 7) == thing && made == 2);
	memo_put(m, 7);
	memo_close(m);
	CHECK(freed == 2);
	memo_close(NULL);
}

static void test_the_longest_unused_is_forgotten(void)
{
	struct memo *m = new_memo(2 * SIZE);

	for (uint64_t key = 1; key <= 2; key++) {
		get(m, key);
		memo_put(m, key);
	}
	get(m, 1);
	memo_put(m, 1);
	get(m, 3);
	memo_put(m, 3);
	CHECK(made == 3 && freed == 1);
	get(m, 1);
	memo_put(m, 1);
	CHECK(made == 3);
	get(m, 2);
	memo_put(m, 2);
	CHECK(made == 4);
	memo_close(m);
}

static void test_entries_in_use_stay(void)
{
	struct memo *m = new_memo(0);
	void *thing = get(m, 1);

	get(m, 2);
	memo_put(m, 2);
	CHECK(freed == 1);
	CHECK(get(m, 1) == thing && made == 2);
	memo_put(m, 1);
	CHECK(freed == 1);
	memo_put(m, 1);
	CHECK(freed == 2);
	memo_close(m);
}

static void test_a_failure_is_not_remembered(void)
{
	const struct order bad = { .result = -EIO };
	struct memo *m = new_memo(1000);
	void *thing = &made;

	CHECK(memo_get(m, 1, &bad, &thing) == -EIO && thing == &made);
	get(m, 1);
	memo_put(m, 1);
	CHECK(made == 2);
	memo_close(m);
	CHECK(freed == 1);
}

struct asker {
	pthread_t thread;
	struct memo *memo;
	const struct order *order;
	uint64_t key;
	int result;
	void *thing;
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	a->result = memo_get(a->memo, a->key, a->order, &a->thing);
	return NULL;
}

/* Many threads want key 1 while it is being made; meanwhile key 2 is had. */
static void ask_together(struct memo *m, int result)
{
	struct asker askers[THREADS];
	sem_t started, go_on;
	const struct order order = { result, &started, &go_on };

	sem_init(&started, 0, 0);
	sem_init(&go_on, 0, 0);
	for (size_t i = 0; i < THREADS; i++) {
		askers[i] =
			(struct asker){ .memo = m, .order = &order, .key = 1 };
		pthread_create(&askers[i].thread, NULL, ask, &askers[i]);
		if (!i)
			sem_wait(&started);
	}
	get(m, 2);
	memo_put(m, 2);
	/* Those who came after a failure make it themselves. */
	for (size_t i = 0; i < THREADS; i++)
		sem_post(&go_on);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		CHECK(askers[i].result == result);
		CHECK(result || askers[i].thing == askers[0].thing);
		if (!result)
			memo_put(m, 1);
	}
	sem_destroy(&started);
	sem_destroy(&go_on);
}

static void test_later_callers_wait(void)
{
	struct memo *m = new_memo(1000);

	ask_together(m, 0);
	CHECK(made == 2);
	memo_close(m);
	CHECK(freed == 2);
	m = new_memo(1000);
	ask_together(m, -EIO);
	CHECK(made >= 2 && freed == 0);
	memo_close(m);
	CHECK(freed == 1);
}

/* Twice the size of an object is needed to make it. */
static uint64_t need(const void *arg)
{
	(void)arg;
	return 2 * SIZE;
}

static void objects_are_within_a_budget(void)
{
	const struct order plain = { .result = 0 },
			   failing = { .result = -EIO };
	struct budget_stats stats;
	struct budget *budget;
	struct memo *m;
	void *thing;

	/* Indexes leave a quarter to other purposes. */
	CHECK(!budget_open(4 * SIZE, NULL, &budget));
	made = freed = 0;
	CHECK(!memo_open(&(struct memo_options){ .bytes_max = 100 * SIZE,
						 .budget = budget,
						 .need = need,
						 .make = make,
						 .free = unmake },
			 &m));
	CHECK(memo_get(m, 1, &failing, &thing) == -EIO);
	get(m, 1);
	get(m, 2);
	budget_stats(budget, &stats);
	CHECK(stats.used[BUDGET_INDEXES] == 2 * SIZE);
	/* Both are in use. */
	CHECK(memo_get(m, 3, &plain, &thing) == -ENOMEM && made == 3);
	CHECK(!memo_reclaim(m, SIZE));
	memo_put(m, 1);
	CHECK(memo_reclaim(m, 1) && freed == 1);
	get(m, 3);
	memo_put(m, 2);
	memo_put(m, 3);
	memo_close(m);
	budget_stats(budget, &stats);
	CHECK(!stats.used[BUDGET_INDEXES]);
	budget_close(budget);
}

/* Neither a table that cannot be made nor one that cannot grow. */
static void test_without_memory_nothing_is_lost(void)
{
	enum { KEYS = 1000 };
	const struct order plain = { .result = 0 };
	unsigned refused = 0;
	void *thing;
	struct memo *m;
	int r;

	for (int n = 0; n < 8; n++) {
		m = new_memo(KEYS * SIZE);
		scarce = n;
		for (uint64_t key = 0; key < KEYS; key++) {
			r = memo_get(m, key, &plain, &thing);
			CHECK(!r || r == -ENOMEM);
			refused += r != 0;
			if (!r)
				memo_put(m, key);
		}
		scarce = -1;
		for (uint64_t key = 0; key < KEYS; key++) {
			get(m, key);
			memo_put(m, key);
		}
		CHECK(made == KEYS && !freed);
		memo_close(m);
		CHECK(freed == KEYS);
	}
	CHECK(refused);
}

int main(void)
{
	test_a_thing_is_made_once();
	test_the_longest_unused_is_forgotten();
	test_entries_in_use_stay();
	test_a_failure_is_not_remembered();
	test_later_callers_wait();
	objects_are_within_a_budget();
	test_without_memory_nothing_is_lost();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/memory/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"
#include "tests/unit/t.h"

enum {
	LIMIT = 6400,
	BULK = LIMIT - LIMIT / 16, /* for large purposes */
	STEP = LIMIT / 64,
	LONG_MS = 20000,
};

static struct budget *new_budget(void)
{
	struct budget *b;

	CHECK(!budget_open(LIMIT, NULL, &b));
	return b;
}

static uint64_t used_for(struct budget *b, enum budget_use use)
{
	struct budget_stats stats;

	budget_stats(b, &stats);
	return stats.used[use];
}

static void bytes_are_counted_by_purpose(void)
{
	struct budget *b = new_budget();

	CHECK(!budget_take(b, BUDGET_SLOTS, BULK - 10, 0));
	CHECK(!budget_take(b, BUDGET_LAYOUTS, 10, 0));
	CHECK(budget_take(b, BUDGET_LAYOUTS, 1, 0) == -ENOMEM);
	budget_move(b, BUDGET_SLOTS, BUDGET_ABANDONED, 100);
	CHECK(used_for(b, BUDGET_SLOTS) == BULK - 110);
	CHECK(used_for(b, BUDGET_ABANDONED) == 100);
	budget_give(b, BUDGET_ABANDONED, 100);
	CHECK(!budget_take(b, BUDGET_INDEXES, 100, 0));
	CHECK(budget_take(b, BUDGET_INDEXES, UINT64_MAX, 0) == -ENOMEM);
	budget_close(b);
}

static void no_budget_has_no_limit(void)
{
	struct budget_stats stats;

	CHECK(!budget_take(NULL, BUDGET_SLOTS, UINT64_MAX, 0));
	CHECK(!budget_pin(NULL, BUDGET_PIN_BATCHES, 1, UINT64_MAX, false));
	budget_give(NULL, BUDGET_SLOTS, 1);
	budget_unpin(NULL, BUDGET_PIN_BATCHES, 1, 1);
	budget_settle(NULL);
	budget_stats(NULL, &stats);
	CHECK(!stats.limit);
	budget_close(NULL);
}

static void set_size(void *arg, uint64_t bytes)
{
	*(uint64_t *)arg = bytes;
}

static void a_cache_uses_what_the_others_leave(void)
{
	struct budget *b = new_budget();
	uint64_t size = LIMIT;

	budget_set_elastic(b, 1000, set_size, &size);
	CHECK(used_for(b, BUDGET_CACHE) == LIMIT);
	CHECK(!budget_take(b, BUDGET_FILES, 1, 0));
	CHECK(size == LIMIT - STEP);
	/* Within the step, it need not change. */
	size = 0;
	CHECK(!budget_take(b, BUDGET_FILES, STEP - 1, 0));
	CHECK(!size);
	CHECK(!budget_take(b, BUDGET_FILES, LIMIT - 1000 - STEP, 0));
	CHECK(size == 1000);
	CHECK(budget_take(b, BUDGET_FILES, 1, 0) == -ENOMEM);
	budget_give(b, BUDGET_FILES, LIMIT - 1000);
	CHECK(size == 1000);
	budget_settle(b);
	CHECK(size == LIMIT && used_for(b, BUDGET_CACHE) == LIMIT);
	budget_close(b);
}

struct hoard {
	struct budget *budget;
	uint64_t bytes;
};

static bool free_some(void *arg, uint64_t bytes)
{
	struct hoard *h = arg;
	uint64_t n = bytes < h->bytes ? bytes : h->bytes;

	h->bytes -= n;
	budget_give(h->budget, BUDGET_NAMES, n);
	return n > 0;
}

static void kept_memory_is_freed_first(void)
{
	struct budget *b = new_budget();
	struct hoard first = { b, 2000 }, second = { b, 3000 };

	budget_add_reclaimer(b, free_some, &first);
	budget_add_reclaimer(b, free_some, &second);
	CHECK(!budget_take(b, BUDGET_NAMES, 5000, 0));
	CHECK(!budget_take(b, BUDGET_FILES, 1400, 0));
	CHECK(first.bytes == 2000);
	CHECK(!budget_take(b, BUDGET_FILES, 2500, 0));
	CHECK(!first.bytes && second.bytes == 500);
	CHECK(budget_take(b, BUDGET_FILES, 2501, 0) == -ENOMEM);
	CHECK(!second.bytes);
	budget_close(b);
}

struct customer {
	struct budget *budget;
	pthread_t thread;
	enum budget_use use;
	uint64_t bytes;
	atomic_int result; /* 1: none yet */
};

static void *buy(void *arg)
{
	struct customer *c = arg;

	c->result = budget_take(c->budget, c->use, c->bytes, LONG_MS);
	return NULL;
}

static void wait_for_waits(struct budget *b, uint64_t n)
{
	struct budget_stats stats;

	do
		budget_stats(b, &stats);
	while (stats.waits < n);
}

static void start_customer(struct customer *c, struct budget *b, uint64_t bytes)
{
	*c = (struct customer){
		.budget = b, .use = BUDGET_SLOTS, .bytes = bytes, .result = 1
	};
	CHECK(!pthread_create(&c->thread, NULL, buy, c));
}

/* A small request does not pass a large one that came before it. */
static void waiting_is_in_turn(void)
{
	struct budget *b = new_budget();
	struct customer large, little;

	CHECK(!budget_take(b, BUDGET_SLOTS, BULK - 100, 0));
	start_customer(&large, b, 3000);
	wait_for_waits(b, 1);
	start_customer(&little, b, 50);
	wait_for_waits(b, 2);
	CHECK(budget_take(b, BUDGET_SLOTS, 50, 0) == -ENOMEM);
	CHECK(large.result == 1 && little.result == 1);
	budget_give(b, BUDGET_SLOTS, 2900);
	CHECK(!pthread_join(large.thread, NULL) && !large.result);
	CHECK(little.result == 1);
	budget_give(b, BUDGET_SLOTS, 50);
	CHECK(!pthread_join(little.thread, NULL) && !little.result);
	CHECK(used_for(b, BUDGET_SLOTS) == BULK);
	budget_close(b);
}

/* A budget that is full of batches, for which others wait, still has room for
   names and open files. */
static void small_purposes_have_a_reserve(void)
{
	struct budget *b = new_budget();
	struct customer large;

	CHECK(!budget_take(b, BUDGET_SLOTS, BULK, 0));
	CHECK(budget_take(b, BUDGET_INDEXES, 1, 0) == -ENOMEM);
	start_customer(&large, b, 100);
	wait_for_waits(b, 2);
	CHECK(!budget_take(b, BUDGET_NAMES, LIMIT - BULK, 0));
	CHECK(budget_take(b, BUDGET_FILES, 1, 0) == -ENOMEM);
	CHECK(large.result == 1);
	budget_give(b, BUDGET_SLOTS, 100);
	CHECK(budget_take(b, BUDGET_NAMES, 0, 0) == 0);
	budget_give(b, BUDGET_NAMES, LIMIT - BULK);
	CHECK(!pthread_join(large.thread, NULL) && !large.result);
	budget_close(b);
}

/* Readers who look up huge batches are in no other reader's way. */
static void large_layouts_leave_room_for_batches(void)
{
	struct budget *b = new_budget();
	struct customer large = { .budget = b,
				  .use = BUDGET_LAYOUTS,
				  .bytes = LIMIT / 2,
				  .result = 1 };

	CHECK(!budget_take(b, BUDGET_LAYOUTS, LIMIT - LIMIT / 4, 0));
	CHECK(budget_take(b, BUDGET_LAYOUTS, STEP + 1, 0) == -ENOMEM);
	CHECK(budget_take(b, BUDGET_INDEXES, STEP + 1, 0) == -ENOMEM);
	CHECK(!pthread_create(&large.thread, NULL, buy, &large));
	wait_for_waits(b, 3);
	CHECK(!budget_take(b, BUDGET_SLOTS, 10 * STEP, 0));
	CHECK(!budget_take(b, BUDGET_LAYOUTS, STEP, 0));
	CHECK(large.result == 1);
	budget_give(b, BUDGET_LAYOUTS, LIMIT - LIMIT / 4);
	CHECK(!pthread_join(large.thread, NULL) && !large.result);
	budget_close(b);
}

static void waiting_ends(void)
{
	struct budget *b = new_budget();
	int64_t begin = clock_ns();

	CHECK(!budget_take(b, BUDGET_SLOTS, BULK, 0));
	CHECK(budget_take(b, BUDGET_SLOTS, 1, 30) == -ENOMEM);
	CHECK(clock_ns() - begin >= 30 * 1000000);
	/* The one who gave up is in no other's way. */
	budget_give(b, BUDGET_SLOTS, 1);
	CHECK(!budget_take(b, BUDGET_SLOTS, 1, 0));
	budget_close(b);
}

static uint64_t pin_all(struct budget *b, uid_t uid)
{
	uint64_t n = 0;

	while (!budget_pin(b, BUDGET_PIN_BATCHES, uid, 1, false))
		n++;
	return n;
}

/* Half of the limit can be pinned: 7/8 of it by one user, 7/8 of the rest that
   is left by the next, and so on. */
static void a_part_is_left_for_each_user(void)
{
	struct budget *b = new_budget();
	struct budget_stats stats;
	uint64_t first = pin_all(b, 1), second = pin_all(b, 2), third;

	CHECK(first == LIMIT / 2 * 7 / 8);
	CHECK(second == (LIMIT / 2 - first) * 7 / 8);
	third = pin_all(b, 3);
	CHECK(third > 0);
	CHECK(!budget_pin(b, BUDGET_PIN_BATCHES, 1, 1000, true));
	CHECK(budget_pin(b, BUDGET_PIN_BATCHES, 4, 1, false) == -ENOSPC);
	budget_unpin(b, BUDGET_PIN_BATCHES, 1, first + 1000);
	budget_unpin(b, BUDGET_PIN_BATCHES, 3, third);
	CHECK(!budget_pin(b, BUDGET_PIN_BATCHES, 4, 1, false));
	/* If there is one other user, both may pin the same amount. */
	CHECK(second + pin_all(b, 2) > LIMIT / 2 * 7 / 16);
	budget_stats(b, &stats);
	CHECK(stats.pinned <= LIMIT / 2);
	budget_close(b);
}

/* A user who may pin no more batches may still open their files. */
static void each_kind_of_pins_has_its_part(void)
{
	struct budget *b = new_budget();

	CHECK(pin_all(b, 1) == LIMIT / 2 * 7 / 8);
	CHECK(!budget_pin(b, BUDGET_PIN_FILES, 1, LIMIT / 4 * 7 / 8, false));
	CHECK(budget_pin(b, BUDGET_PIN_FILES, 1, LIMIT / 4, false) == -ENOSPC);
	budget_unpin(b, BUDGET_PIN_FILES, 1, LIMIT / 4 * 7 / 8);
	CHECK(budget_pin(b, BUDGET_PIN_BATCHES, 1, LIMIT / 4, false) ==
	      -ENOSPC);
	budget_close(b);
}

static void keep_message(void *arg, enum beton_log_level level,
			 const char *text)
{
	(void)level;
	snprintf(arg, 256, "%s", text);
}

/* Bytes of a cache are not taken, and its cold tier lives as long as it. */
static void a_close_reports_bytes_that_nothing_gave_back(void)
{
	struct budget *b;
	char message[256] = "";
	struct log log;

	log_init(&log, keep_message, message);
	for (int leaks = 0; leaks < 3; leaks++) {
		CHECK(!budget_open(LIMIT, &log, &b));
		CHECK(!budget_take(b, BUDGET_COLD, 100, 0));
		CHECK(!budget_take(b, BUDGET_LAYOUTS, 30, 0));
		budget_give(b, BUDGET_LAYOUTS, leaks == 1 ? 23 : 30);
		CHECK(!budget_pin(b, BUDGET_PIN_FILES, 1, 50, false));
		budget_unpin(b, BUDGET_PIN_FILES, 1, leaks == 2 ? 45 : 50);
		budget_close(b);
		CHECK((leaks > 0) == (*message != '\0'));
	}
	CHECK(strstr(message, "pinned"));
	log_fini(&log);
}

/* For callers that must not wait, not even until the cache is smaller. */
static void unused_bytes_are_taken_at_once(void)
{
	struct budget *b = new_budget();
	uint64_t cache = LIMIT;

	CHECK(!budget_take_unused(NULL, BUDGET_FILES, UINT64_MAX));
	CHECK(!budget_take_unused(b, BUDGET_FILES, 100));
	CHECK(used_for(b, BUDGET_FILES) == 100);
	CHECK(budget_take_unused(b, BUDGET_FILES, LIMIT) == -ENOMEM);
	CHECK(used_for(b, BUDGET_FILES) == 100);
	budget_give(b, BUDGET_FILES, 100);
	budget_close(b);

	b = new_budget();
	budget_set_elastic(b, STEP, set_size, &cache);
	CHECK(budget_take_unused(b, BUDGET_FILES, 1) == -ENOMEM);
	CHECK(!budget_take(b, BUDGET_FILES, 1, 0));
	CHECK(cache < LIMIT);
	CHECK(!budget_take_unused(b, BUDGET_FILES, STEP / 2));
	budget_give(b, BUDGET_FILES, 1 + STEP / 2);
	budget_close(b);
}

int main(void)
{
	a_close_reports_bytes_that_nothing_gave_back();
	bytes_are_counted_by_purpose();
	no_budget_has_no_limit();
	a_cache_uses_what_the_others_leave();
	kept_memory_is_freed_first();
	waiting_is_in_turn();
	small_purposes_have_a_reserve();
	large_layouts_leave_room_for_batches();
	waiting_ends();
	a_part_is_left_for_each_user();
	each_kind_of_pins_has_its_part();
	unused_bytes_are_taken_at_once();
	return 0;
}

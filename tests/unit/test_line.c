/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/data/engine/line.h"
#include "tests/unit/t.h"

/* The clock, so many seconds later. */
static _Atomic time_t later_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += atomic_load(&later_s);
	return (int)r;
}

static void the_first_is_served_first(void)
{
	struct line_place a = { .bytes = 6 }, b = { .bytes = 6 };
	struct line line;

	line_init(&line);
	CHECK(line_is_empty(&line) && line_is_turn(&line, &a));
	line_enter(&line, &a);
	line_enter(&line, &b);
	CHECK(!line_is_empty(&line));
	CHECK(line_is_turn(&line, &a) && !line_is_turn(&line, &b));
	atomic_fetch_add(&later_s, 9);
	CHECK(line_is_turn(&line, &a) && !line_is_turn(&line, &b));
	line_leave(&line, &a);
	CHECK(line_is_turn(&line, &b));
	line_leave(&line, &b);
	CHECK(line_is_empty(&line));
	line_destroy(&line);
}

/* Among those who may pass, too, the first one comes first. */
static void small_needs_pass_large_ones_after_a_while(void)
{
	struct line_place large = { .bytes = 6 }, small = { .bytes = 3 },
			  other = { .bytes = 3 };
	struct line line;

	line_init(&line);
	line_enter(&line, &large);
	CHECK(!line_is_turn(&line, &small));
	atomic_fetch_add(&later_s, 1);
	CHECK(line_is_turn(&line, &small));
	line_enter(&line, &small);
	CHECK(line_is_turn(&line, &large) && line_is_turn(&line, &small));
	CHECK(!line_is_turn(&line, &other));
	line_leave(&line, &small);
	line_leave(&line, &large);
	line_destroy(&line);
}

static void a_wait_ends_when_something_was_freed(void)
{
	struct line_stats stats;
	struct line line;
	uint64_t frees;

	line_init(&line);
	frees = line_frees(&line);
	line_freed(&line);
	line_wait(&line, frees);
	/* Nothing was freed since: it ends by itself. */
	line_wait(&line, line_frees(&line));
	line_stats(&line, &stats);
	CHECK(!stats.waiting && stats.wait_ns);
	line_destroy(&line);
}

int main(void)
{
	the_first_is_served_first();
	small_needs_pass_large_ones_after_a_while();
	atomic_store(&later_s, 0);
	a_wait_ends_when_something_was_freed();
	return 0;
}

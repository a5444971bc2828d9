/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fs/engine/pool.h"
#include "fs/util/rng.h"
#include "tests/unit/t.h"

enum { MIB = 1 << 20, THREADS = 6 };

static struct pool *pool_of(uint64_t limit)
{
	struct pool *pool;

	CHECK(!pool_open(limit, &pool));
	return pool;
}

static struct piece *take(struct pool *pool, uint64_t size)
{
	struct piece *p;

	CHECK(!pool_take(pool, size, false, &p));
	return p;
}

static struct pool_stats stats_of(struct pool *pool)
{
	struct pool_stats s;

	pool_stats(pool, &s);
	return s;
}

static void pieces_are_aligned_and_writable(void)
{
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 3 * MIB);

	CHECK((uintptr_t)p->bytes % POOL_ALIGN == 0);
	CHECK(p->capacity == 4 * MIB);
	memset(p->bytes, 0xa5, p->capacity);
	CHECK(stats_of(pool).pieces == 1 && stats_of(pool).bytes == 4 * MIB);
	CHECK(stats_of(pool).collapsed == p->collapsed);
	pool_give(pool, &p);
	CHECK(!p);
	pool_give(pool, &p);
	p = take(pool, 0);
	CHECK(p->capacity == 4 * MIB);
	pool_give(pool, &p);
	pool_close(pool);
	pool_close(NULL);
}

/* As another process does with the descriptor that it was sent. */
static void a_peer_reads_and_can_do_nothing_else(void)
{
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	const char *seen;
	char path[64];
	int fd;

	if (p->fd < 0) {
		fprintf(stderr, "test_pool: no sealed memory here: skipped\n");
		goto out;
	}
	CHECK(ftruncate(p->fd, 0) && errno == EPERM);
	CHECK(ftruncate(p->fd, 8 * MIB) && errno == EPERM);
	CHECK(pwrite(p->fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			4096) &&
	      errno == EPERM);
	CHECK(fcntl(p->fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0) ==
	      MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     0) == MAP_FAILED);
	if (fd >= 0)
		close(fd);
	seen = mmap(NULL, p->capacity, PROT_READ, MAP_SHARED, p->fd, 0);
	CHECK(seen != MAP_FAILED);
	memcpy(p->bytes + MIB, "batch", 5);
	CHECK(!memcmp(seen + MIB, "batch", 5));
	/* The owner's end is not the reader's. */
	pool_give(pool, &p);
	pool_close(pool);
	CHECK(!memcmp(seen + MIB, "batch", 5));
	munmap((void *)seen, 2 * MIB);
	return;
out:
	pool_give(pool, &p);
	pool_close(pool);
}

static void the_last_one_given_back_is_taken_first(void)
{
	struct pool *pool = pool_of(64 * MIB);
	struct piece *a = take(pool, 2 * MIB), *b = take(pool, 2 * MIB);
	uint64_t first = a->id, second = b->id;

	CHECK(first != second);
	pool_give(pool, &b);
	pool_give(pool, &a);
	a = take(pool, 1);
	b = take(pool, 2 * MIB);
	CHECK(a->id == first && b->id == second);
	CHECK(stats_of(pool).made == 2 && !stats_of(pool).unused);
	pool_give(pool, &a);
	pool_give(pool, &b);
	pool_close(pool);
}

/* Twice too large is still used; more would be waste. */
static void a_piece_of_another_size_is_not_used(void)
{
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 12 * MIB);
	uint64_t id = p->id;

	pool_give(pool, &p);
	p = take(pool, 4 * MIB);
	CHECK(p->id != id && p->capacity == 4 * MIB);
	pool_give(pool, &p);
	p = take(pool, 6 * MIB);
	CHECK(p->id == id);
	pool_give(pool, &p);
	p = take(pool, 14 * MIB);
	CHECK(p->capacity == 14 * MIB);
	pool_give(pool, &p);
	pool_close(pool);
}

static void the_limit_holds(void)
{
	struct pool *pool = pool_of(8 * MIB);
	struct piece *a = take(pool, 2 * MIB), *b = take(pool, 6 * MIB), *c;

	CHECK(pool_take(pool, 1, false, &c) == -ENOSPC);
	CHECK(pool_take(pool, UINT64_MAX, true, &c) == -ENOMEM);
	CHECK(!pool_is_over(pool));
	/* Unused ones of other sizes make room. */
	pool_give(pool, &b);
	c = take(pool, 2 * MIB);
	CHECK(stats_of(pool).bytes == 4 * MIB && stats_of(pool).pieces == 2);
	pool_give(pool, &c);
	/* Who insists gets more, and what is too much goes when it is back. */
	CHECK(!pool_take(pool, 12 * MIB, true, &c));
	CHECK(pool_is_over(pool) && stats_of(pool).bytes == 14 * MIB);
	pool_give(pool, &c);
	CHECK(!pool_is_over(pool) && stats_of(pool).pieces == 1);
	pool_give(pool, &a);
	pool_close(pool);
}

/* Batches of one stream differ by a little. */
static void large_pieces_have_room_for_more(void)
{
	struct pool *pool = pool_of(128 * MIB);
	struct piece *p = take(pool, 32 * MIB);
	uint64_t id = p->id;

	pool_give(pool, &p);
	p = take(pool, 34 * MIB);
	CHECK(p->id == id);
	pool_give(pool, &p);
	pool_close(pool);
}

static void what_is_dropped_is_not_taken_again(void)
{
	struct pool *pool = pool_of(8 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	uint64_t id = p->id;

	pool_drop(pool, &p);
	CHECK(!p && !stats_of(pool).pieces && !stats_of(pool).bytes);
	pool_drop(pool, &p);
	p = take(pool, 2 * MIB);
	CHECK(p->id != id);
	pool_give(pool, &p);
	pool_close(pool);
}

static void a_lower_limit_frees_what_is_unused(void)
{
	struct pool *pool = pool_of(8 * MIB);
	struct piece *a = take(pool, 2 * MIB), *b = take(pool, 2 * MIB);

	pool_give(pool, &a);
	pool_set_limit(pool, 2 * MIB);
	CHECK(stats_of(pool).pieces == 1 && !stats_of(pool).unused);
	pool_set_limit(pool, 0);
	CHECK(stats_of(pool).pieces == 1 && pool_is_over(pool));
	pool_give(pool, &b);
	CHECK(!stats_of(pool).pieces && !stats_of(pool).bytes);
	pool_close(pool);
}

/* Memory of its own is the last resort. */
static void no_descriptor_is_no_obstacle(void)
{
	struct pool *pool = pool_of(8 * MIB);
	struct rlimit before, none;
	struct piece *p;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = 0;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	p = take(pool, 2 * MIB);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	CHECK(p->fd == -1);
	memset(p->bytes, 1, p->capacity);
	pool_give(pool, &p);
	pool_close(pool);
}

struct taker {
	struct pool *pool;
	uint8_t mark;
};

static void *take_and_give(void *arg)
{
	struct taker *t = arg;
	struct rng rng = { .key = t->mark };
	struct piece *p;

	for (int i = 0; i < 200; i++) {
		CHECK(!pool_take(t->pool, rng_next(&rng) % (6 * MIB),
				 rng_next(&rng) % 8 == 0, &p) ||
		      pool_take(t->pool, 1, true, &p) == 0);
		p->bytes[0] = p->bytes[p->capacity - 1] = t->mark;
		CHECK(p->bytes[0] == t->mark);
		CHECK(p->bytes[p->capacity - 1] == t->mark);
		pool_give(t->pool, &p);
	}
	return NULL;
}

static void threads_do_not_share_pieces(void)
{
	struct pool *pool = pool_of(12 * MIB);
	struct taker takers[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		takers[i] = (struct taker){ pool, (uint8_t)i };
		CHECK(!pthread_create(&threads[i], NULL, take_and_give,
				      &takers[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!pool_is_over(pool));
	CHECK(stats_of(pool).pieces == stats_of(pool).unused);
	pool_close(pool);
}

int main(void)
{
	pieces_are_aligned_and_writable();
	a_peer_reads_and_can_do_nothing_else();
	the_last_one_given_back_is_taken_first();
	a_piece_of_another_size_is_not_used();
	the_limit_holds();
	large_pieces_have_room_for_more();
	what_is_dropped_is_not_taken_again();
	a_lower_limit_frees_what_is_unused();
	no_descriptor_is_no_obstacle();
	threads_do_not_share_pieces();
	return 0;
}

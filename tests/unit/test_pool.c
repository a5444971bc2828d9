/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/engine/pool.h"
#include "tests/unit/t.h"
#include "tests/unit/vm_flags.h"

enum { MIB = 1 << 20, THREADS = 6 };

static const struct pool_readers ours = { .uid = 1, .gid = 2, .mode = 0600 };

static struct pool *pool_of(uint64_t limit)
{
	struct pool *pool;

	CHECK(!pool_open(
		&(struct pool_options){ .limit = limit, .keep = limit },
		&pool));
	return pool;
}

static struct piece *take(struct pool *pool, uint64_t size)
{
	struct piece *p;

	CHECK(!pool_take(pool, size, &ours, &p));
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

	CHECK(pool_take(pool, 1, &ours, &c) == -ENOSPC);
	CHECK(pool_take(pool, UINT64_MAX, &ours, &c) == -ENOMEM);
	/* Unused ones of other sizes make room. */
	pool_give(pool, &b);
	c = take(pool, 2 * MIB);
	CHECK(stats_of(pool).bytes == 4 * MIB && stats_of(pool).pieces == 2);
	pool_give(pool, &c);
	pool_give(pool, &a);
	pool_close(pool);
}

/* More may be used at once than is kept for later. */
static void unused_memory_is_kept_up_to_a_bound(void)
{
	struct piece *a, *b;
	struct pool *pool;

	CHECK(!pool_open(
		&(struct pool_options){ .limit = 64 * MIB, .keep = 4 * MIB },
		&pool));
	a = take(pool, 2 * MIB);
	CHECK(!pool_is_over(pool));
	b = take(pool, 12 * MIB);
	CHECK(pool_is_over(pool) && stats_of(pool).bytes == 14 * MIB);
	pool_give(pool, &b);
	CHECK(!pool_is_over(pool) && stats_of(pool).pieces == 1);
	pool_give(pool, &a);
	CHECK(stats_of(pool).unused == 1);
	pool_close(pool);
}

static struct budget *budget_of(uint64_t bytes)
{
	struct budget *budget;

	/* The rest is for others. */
	CHECK(!budget_open(bytes + bytes / 15 + 1, NULL, &budget));
	return budget;
}

static uint64_t used_for(struct budget *budget, enum budget_use use)
{
	struct budget_stats stats;

	budget_stats(budget, &stats);
	return stats.used[use];
}

static void all_memory_is_charged(void)
{
	struct budget *budget = budget_of(8 * MIB);
	const struct pool_options options = { 64 * MIB, 64 * MIB, budget };
	struct piece *a, *b;
	struct pool *pool;

	CHECK(!pool_open(&options, &pool));
	a = take(pool, 6 * MIB);
	CHECK(used_for(budget, BUDGET_SLOTS) == 6 * MIB);
	CHECK(pool_take(pool, 4 * MIB, &ours, &b) == -ENOSPC);
	CHECK(stats_of(pool).bytes == 6 * MIB);
	b = take(pool, 2 * MIB);
	pool_give(pool, &a);
	CHECK(used_for(budget, BUDGET_SLOTS) == 8 * MIB);
	CHECK(pool_tidy(pool) && !pool_tidy(pool));
	CHECK(used_for(budget, BUDGET_SLOTS) == 2 * MIB);
	pool_give(pool, &b);
	pool_close(pool);
	CHECK(!used_for(budget, BUDGET_SLOTS));
	budget_close(budget);
}

/* --- memory that a peer maps --- */

enum { PEER = 77 };

/* Exports a piece, and maps it as another process would. NULL: impossible
   here. */
static void *map_shared(struct pool *pool, struct piece *p, uid_t uid)
{
	void *seen;
	int fd;

	if (pool_share(pool, p, uid, &fd)) {
		fprintf(stderr, "test_pool: no sealed memory here: skipped\n");
		return NULL;
	}
	seen = mmap(NULL, p->capacity, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(seen != MAP_FAILED);
	close(fd);
	return seen;
}

/* A process that keeps its mapping would see batches of others. */
static void shared_memory_keeps_its_readers(void)
{
	const struct pool_readers others[] = { { 9, 2, 0600 },
					       { 1, 9, 0600 },
					       { 1, 2, 0644 } };
	struct piece *not_ours[ARRAY_LEN(others)] = { NULL };
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	uint64_t id = p->id;
	void *seen = map_shared(pool, p, PEER);

	pool_give(pool, &p);
	for (size_t i = 0; seen && i < ARRAY_LEN(others); i++) {
		CHECK(!pool_take(pool, 2 * MIB, &others[i], &not_ours[i]));
		CHECK(not_ours[i]->id != id);
	}
	p = take(pool, 2 * MIB);
	CHECK(!seen || p->id == id);
	pool_give(pool, &p);
	/* Once it is unmapped, the memory is free for all users. */
	if (seen) {
		munmap(seen, 2 * MIB);
		CHECK(!pool_take(pool, 2 * MIB, &others[0], &p));
		CHECK(p->id == id);
		pool_give(pool, &p);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		pool_give(pool, &not_ours[i]);
	pool_close(pool);
}

/* An open descriptor is as good as a mapping, also on its way to a process. */
static void a_descriptor_counts_as_a_mapping(void)
{
	const struct pool_readers other = { 9, 9, 0600 };
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	uint64_t id = p->id;
	int fd, copy;

	if (pool_share(pool, p, PEER, &fd)) {
		pool_give(pool, &p);
		pool_close(pool);
		return;
	}
	copy = dup(fd);
	close(fd);
	pool_give(pool, &p);
	CHECK(!pool_take(pool, 2 * MIB, &other, &p) && p->id != id);
	pool_abandon(pool, &p);
	close(copy);
	pool_tidy(pool);
	CHECK(!stats_of(pool).pieces && !stats_of(pool).abandoned);
	pool_close(pool);
}

/* A user has held the memory: an O_PATH descriptor does not count as a use of
   it, and must not open it later. Returns whether it does. */
static bool opens_later(int fd)
{
	char path[64];
	int kept;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kept = open(path, O_PATH | O_CLOEXEC);
	CHECK(kept >= 0);
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept);
	return open(path, O_RDONLY | O_CLOEXEC) >= 0;
}

static void shared_memory_is_not_opened_again(void)
{
	struct pool *pool = pool_of(64 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	struct stat st;
	int fd, status;
	pid_t child;

	if (!pool_share(pool, p, PEER, &fd)) {
		CHECK(!fstat(fd, &st) && (st.st_mode & 0777) == 0600);
		child = can_be_another_user("shared memory opened again")
				? fork()
				: -1;
		if (!child)
			_exit(setresgid(PEER, PEER, PEER) ||
			      setgroups(0, NULL) ||
			      setresuid(PEER, PEER, PEER) || opens_later(fd));
		if (child > 0) {
			CHECK(waitpid(child, &status, 0) == child);
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		}
		close(fd);
	}
	pool_give(pool, &p);
	pool_close(pool);
}

static void abandoned_memory_stays_charged_while_it_is_mapped(void)
{
	struct budget *budget = budget_of(32 * MIB);
	const struct pool_options options = { 8 * MIB, 8 * MIB, budget };
	struct budget_stats stats;
	struct pool *pool;
	struct piece *p;
	uint64_t id;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	id = p->id;
	seen = map_shared(pool, p, PEER);
	pool_abandon(pool, &p);
	if (seen) {
		/* The user pays for it, and others find room. */
		CHECK(!stats_of(pool).bytes);
		CHECK(stats_of(pool).abandoned == 8 * MIB);
		budget_stats(budget, &stats);
		CHECK(stats.used[BUDGET_ABANDONED] == 8 * MIB);
		CHECK(!stats.used[BUDGET_SLOTS]);
		CHECK(stats.pinned == 8 * MIB);
		p = take(pool, 8 * MIB);
		CHECK(p->id != id);
		pool_give(pool, &p);
		munmap(seen, 8 * MIB);
	}
	CHECK(pool_tidy(pool));
	budget_stats(budget, &stats);
	CHECK(!stats.used[BUDGET_ABANDONED] && !stats.used[BUDGET_SLOTS]);
	CHECK(!stats.pinned && !stats_of(pool).abandoned);
	pool_close(pool);
	budget_close(budget);
}

/* A loader keeps its mappings for the next batches. If the daemon gave such
   memory up, it would be charged for it and could not use it. */
static uint64_t pinned_in(struct budget *budget)
{
	struct budget_stats stats;

	budget_stats(budget, &stats);
	return stats.pinned;
}

/* A user that releases memory and keeps it mapped could fill the pool. */
static void unused_memory_is_charged_to_users_that_map_it(void)
{
	struct budget *budget = budget_of(32 * MIB);
	const struct pool_options options = { 16 * MIB, 16 * MIB, budget };
	struct pool *pool;
	struct piece *p, *small;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	seen = map_shared(pool, p, PEER);
	if (seen) {
		munmap(map_shared(pool, p, PEER + 1), 8 * MIB);
		CHECK(!pinned_in(budget));
		pool_give(pool, &p);
		CHECK(pinned_in(budget) == 8 * MIB);
		p = take(pool, 8 * MIB);
		CHECK(!pinned_in(budget));
		pool_give(pool, &p);
		CHECK(pinned_in(budget) == 8 * MIB);
		munmap(seen, 8 * MIB);
		small = take(pool, 2 * MIB);
		CHECK(!pinned_in(budget));
		pool_give(pool, &small);
	}
	pool_give(pool, &p);
	pool_close(pool);
	CHECK(!pinned_in(budget));
	budget_close(budget);
}

/* Its users have it beyond the end of the pool. */
static void unused_memory_is_charged_until_the_end(void)
{
	struct budget *budget = budget_of(32 * MIB);
	const struct pool_options options = { 16 * MIB, 16 * MIB, budget };
	struct pool *pool;
	struct piece *p;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	seen = map_shared(pool, p, PEER);
	pool_give(pool, &p);
	pool_close(pool);
	CHECK(!pinned_in(budget));
	budget_close(budget);
	if (seen)
		munmap(seen, 8 * MIB);
}

static void mapped_memory_is_used_again(void)
{
	struct budget *budget = budget_of(12 * MIB);
	const struct pool_options options = { .limit = 12 * MIB,
					      .budget = budget };
	struct pool *pool;
	struct piece *p;
	uint64_t id;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	id = p->id;
	seen = map_shared(pool, p, PEER);
	pool_give(pool, &p);
	pool_tidy(pool);
	p = take(pool, 8 * MIB);
	CHECK(!seen || p->id == id);
	pool_give(pool, &p);
	if (seen)
		munmap(seen, 8 * MIB);
	pool_tidy(pool);
	CHECK(!stats_of(pool).pieces && !stats_of(pool).abandoned);
	pool_close(pool);
	budget_close(budget);
}

/* A process that has ended charges no user, whatever others still map. */
static void a_pool_that_is_closed_charges_no_user(void)
{
	struct budget *budget = budget_of(32 * MIB);
	const struct pool_options options = { 8 * MIB, 8 * MIB, budget };
	struct budget_stats stats;
	struct pool *pool;
	struct piece *p;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	seen = map_shared(pool, p, PEER);
	pool_abandon(pool, &p);
	pool_close(pool);
	budget_stats(budget, &stats);
	CHECK(!stats.pinned && !stats.used[BUDGET_ABANDONED]);
	CHECK(!stats.used[BUDGET_SLOTS]);
	if (seen)
		munmap(seen, 8 * MIB);
	budget_close(budget);
}

/* Unused memory that is mapped elsewhere cannot be freed, but makes room. */
static void shared_memory_makes_room_for_others(void)
{
	struct budget *budget = budget_of(32 * MIB);
	const struct pool_options options = { 8 * MIB, 8 * MIB, budget };
	const struct pool_readers other = { 9, 9, 0600 };
	struct pool *pool;
	struct piece *p;
	void *seen;

	CHECK(!pool_open(&options, &pool));
	p = take(pool, 8 * MIB);
	seen = map_shared(pool, p, PEER);
	pool_give(pool, &p);
	CHECK(!pool_take(pool, 8 * MIB, &other, &p));
	CHECK(stats_of(pool).bytes == 8 * MIB);
	CHECK(stats_of(pool).abandoned == (seen ? 8 * MIB : 0));
	pool_give(pool, &p);
	if (seen)
		munmap(seen, 8 * MIB);
	pool_close(pool);
	CHECK(!used_for(budget, BUDGET_ABANDONED));
	budget_close(budget);
}

static void few_users_acquire_one_piece(void)
{
	struct pool *pool = pool_of(8 * MIB);
	struct piece *p = take(pool, 2 * MIB);
	void *seen = map_shared(pool, p, 0);
	int fd;

	for (uid_t uid = 1; seen && uid < PIECE_HOLDERS; uid++) {
		CHECK(!pool_share(pool, p, uid, &fd));
		close(fd);
	}
	CHECK(pool_share(pool, p, PIECE_HOLDERS, &fd) == -ENOSPC);
	if (seen) {
		CHECK(!pool_share(pool, p, 0, &fd));
		close(fd);
		munmap(seen, 2 * MIB);
	}
	pool_give(pool, &p);
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
		if (pool_take(t->pool, rng_next(&rng) % (6 * MIB), &ours, &p))
			continue;
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

/* Memory that no file stands for is copied by fork(). */
static void a_child_gets_no_private_memory(void)
{
	const struct pool_options options = { 8 * MIB, 8 * MIB, NULL };
	struct rlimit before, none = { 0, 0 };
	struct pool *pool;
	struct piece *p;

	CHECK(!pool_open(&options, &pool));
	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	none.rlim_max = before.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	CHECK(!pool_take(pool, 2 * MIB, &ours, &p) && p->fd < 0);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	CHECK(vm_has_flag(p->bytes, " dc"));
	pool_give(pool, &p);
	pool_close(pool);
}

int main(void)
{
	a_child_gets_no_private_memory();
	pieces_are_aligned_and_writable();
	a_peer_reads_and_can_do_nothing_else();
	the_last_one_given_back_is_taken_first();
	a_piece_of_another_size_is_not_used();
	the_limit_holds();
	large_pieces_have_room_for_more();
	unused_memory_is_kept_up_to_a_bound();
	all_memory_is_charged();
	shared_memory_keeps_its_readers();
	a_descriptor_counts_as_a_mapping();
	shared_memory_is_not_opened_again();
	abandoned_memory_stays_charged_while_it_is_mapped();
	unused_memory_is_charged_to_users_that_map_it();
	unused_memory_is_charged_until_the_end();
	mapped_memory_is_used_again();
	a_pool_that_is_closed_charges_no_user();
	shared_memory_makes_room_for_others();
	few_users_acquire_one_piece();
	no_descriptor_is_no_obstacle();
	threads_do_not_share_pieces();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/jobs.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

enum { MANY = 300, THREADS = 8, ROUNDS = 2000 };

static struct jobs_entry entries[JOBS_MAX + 1];

static size_t list(struct jobs *jobs)
{
	return jobs_list(jobs, 0, 0, entries, ARRAY_LEN(entries));
}

/* Its entry, or NULL. */
static const struct jobs_entry *entry_of(struct jobs *jobs, const char *name)
{
	size_t n = list(jobs);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(entries[i].name, name))
			return &entries[i];
	}
	return NULL;
}

static void add(struct jobs *jobs, const char *name, enum jobs_way way,
		uint64_t batches, uint64_t bytes)
{
	struct job *job = jobs_get(jobs, 0, name);

	job_add(job, way, batches, bytes);
	jobs_put(&job);
	CHECK(!job);
}

static void late(struct jobs *jobs, const char *name, enum jobs_way way)
{
	struct job *job = jobs_get(jobs, 0, name);

	job_stalled(job, way);
	jobs_put(&job);
}

static void test_counts_by_name_and_by_way(void)
{
	struct jobs_count ways[JOBS_WAYS];
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	CHECK(list(jobs) == 0);
	add(jobs, "a", JOBS_ZEROCOPY, 1, 100);
	add(jobs, "b", JOBS_DIRECT, 1, 0);
	add(jobs, "a", JOBS_ZEROCOPY, 2, 30);
	add(jobs, "b", JOBS_PAGE_CACHE, 0, 7);
	CHECK(list(jobs) == 2);
	CHECK(entry_of(jobs, "a")->count.batches == 3);
	CHECK(entry_of(jobs, "a")->count.bytes == 130);
	CHECK(entry_of(jobs, "b")->count.batches == 1);
	CHECK(entry_of(jobs, "b")->count.bytes == 7);
	CHECK(entry_of(jobs, "b")->last_s < 60);
	late(jobs, "b", JOBS_DIRECT);
	CHECK(entry_of(jobs, "b")->count.stalled == 1);
	CHECK(entry_of(jobs, "a")->count.stalled == 0);
	jobs_delivered(jobs, 0, ways);
	CHECK(ways[JOBS_DIRECT].stalled == 1 &&
	      ways[JOBS_ZEROCOPY].stalled == 0);
	CHECK(ways[JOBS_ZEROCOPY].batches == 3);
	CHECK(ways[JOBS_ZEROCOPY].bytes == 130);
	CHECK(ways[JOBS_DIRECT].batches == 1 && ways[JOBS_DIRECT].bytes == 0);
	CHECK(ways[JOBS_PAGE_CACHE].batches == 0);
	CHECK(ways[JOBS_PAGE_CACHE].bytes == 7);
	jobs_close(jobs);
}

static void test_sessions(void)
{
	char name[JOBS_NAME_SIZE];
	struct job *own, *gone;
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	own = jobs_get_session(jobs, 0, getpid());
	gone = jobs_get_session(jobs, 0, 0);
	CHECK(own && gone);
	snprintf(name, sizeof(name), "session-%d", (int)getsid(0));
	CHECK(entry_of(jobs, name));
	CHECK(entry_of(jobs, "session-0"));
	jobs_put(&own);
	own = jobs_get_session(jobs, 0, -1);
	CHECK(own == gone);
	jobs_put(&own);
	jobs_put(&gone);
	jobs_close(jobs);
}

static void test_a_long_name_is_cut(void)
{
	char name[2 * JOBS_NAME_SIZE] = { 0 };
	struct job *a, *b;
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	memset(name, 'x', sizeof(name) - 1);
	a = jobs_get(jobs, 0, name);
	name[JOBS_NAME_SIZE - 1] = '\0';
	b = jobs_get(jobs, 0, name);
	CHECK(a && a == b);
	CHECK(entry_of(jobs, name));
	jobs_put(&a);
	jobs_put(&b);
	jobs_close(jobs);
}

static void test_the_least_recent_is_forgotten(void)
{
	char name[JOBS_NAME_SIZE];
	struct jobs_entry entry;
	struct job *kept;
	struct jobs *jobs;
	size_t n;

	CHECK(!jobs_open(1, &jobs));
	kept = jobs_get(jobs, 0, "image_cache");
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "job-%u", i);
		add(jobs, name, JOBS_DIRECT, 1, i);
	}
	/* One that is in use stays, and of the rest the newest do. */
	CHECK(entry_of(jobs, "image_cache"));
	CHECK(entry_of(jobs, name));
	CHECK(!entry_of(jobs, "job-0"));
	n = list(jobs);
	CHECK(n == JOBS_MAX);
	for (size_t i = 1; i < n; i++)
		CHECK(entries[i].number > entries[i - 1].number);
	/* Numbers are not given twice. */
	CHECK(jobs_list(jobs, 0, 2, &entry, 1) == 1 && entry.number > 2);
	jobs_put(&kept);
	jobs_close(jobs);
}

/* All are in use: the table stays bounded, and a dropped job can continue. */
static void test_jobs_in_use_are_forgotten_too(void)
{
	struct jobs_count ways[JOBS_WAYS];
	char name[JOBS_NAME_SIZE];
	struct job *all[MANY];
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "job-%u", i);
		all[i] = jobs_get(jobs, 0, name);
		CHECK(all[i]);
	}
	CHECK(list(jobs) == JOBS_MAX);
	for (unsigned i = 0; i < MANY; i++) {
		job_add(all[i], JOBS_DIRECT, 1, 2);
		jobs_put(&all[i]);
	}
	jobs_delivered(jobs, 0, ways);
	CHECK(ways[JOBS_DIRECT].batches == MANY);
	CHECK(ways[JOBS_DIRECT].bytes == 2 * MANY);
	jobs_close(jobs);
}

static void test_the_list_has_a_time_of_change(void)
{
	struct timespec before, after;
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	before = jobs_changed(jobs, 0);
	add(jobs, "a", JOBS_DIRECT, 1, 1);
	after = jobs_changed(jobs, 0);
	CHECK(after.tv_sec != before.tv_sec || after.tv_nsec != before.tv_nsec);
	before = after;
	add(jobs, "a", JOBS_DIRECT, 1, 1);
	after = jobs_changed(jobs, 0);
	CHECK(after.tv_sec == before.tv_sec && after.tv_nsec == before.tv_nsec);
	jobs_close(jobs);
}

static void test_connections(void)
{
	struct jobs *jobs;
	struct job *a;

	CHECK(!jobs_open(1, &jobs));
	a = jobs_get(jobs, 0, "a");
	job_connect(a);
	job_connect(a);
	CHECK(entry_of(jobs, "a")->connections == 2);
	job_disconnect(a);
	CHECK(entry_of(jobs, "a")->connections == 1);
	jobs_put(&a);
	jobs_close(jobs);
}

static struct rank_figures figures_of(uint64_t samples, uint64_t wait_ns)
{
	return (struct rank_figures){
		.epoch = samples,
		.number = 5,
		.n = { [FIGURE_SAMPLES] = samples, [FIGURE_WAIT_NS] = wait_ns },
	};
}

/* Loaders of one rank, as for training and for validating, add up. */
static void test_ranks(void)
{
	struct rank_figures figures = figures_of(100, 7);
	struct job_rank *train, *eval, *other;
	struct jobs_rank ranks[4];
	struct jobs *jobs;
	struct job *a, *b;

	CHECK(!jobs_open(1, &jobs));
	a = jobs_get(jobs, 0, "a");
	b = jobs_get(jobs, 0, "b");
	CHECK(!jobs_ranks(jobs, 0, 0, ranks, 4));
	other = job_rank_open(b, 0, 1);
	train = job_rank_open(a, 3, 8);
	eval = job_rank_open(a, 3, 8);
	CHECK(train && train == eval && other && other != train);
	job_report(a, train, &figures);
	figures = figures_of(20, 1);
	job_report(a, eval, &figures);
	eval = job_rank_open(a, 1, 8);
	CHECK(jobs_ranks(jobs, 0, 0, ranks, 4) == 3);
	/* By job, and by rank. */
	CHECK(!strcmp(ranks[0].job, "a") && ranks[0].rank == 1);
	CHECK(ranks[0].loaders == 1 && !ranks[0].all.n[FIGURE_SAMPLES]);
	CHECK(!strcmp(ranks[1].job, "a") && ranks[1].rank == 3);
	CHECK(ranks[1].world_size == 8 && ranks[1].loaders == 2);
	CHECK(ranks[1].all.n[FIGURE_SAMPLES] == 120);
	CHECK(ranks[1].all.n[FIGURE_WAIT_NS] == 8);
	CHECK(ranks[1].all.epoch == 20 && ranks[1].all.number == 5);
	CHECK(ranks[1].last.n[FIGURE_SAMPLES] == 20);
	CHECK(ranks[1].idle_s < 60);
	CHECK(!strcmp(ranks[2].job, "b") && ranks[2].rank == 0);
	CHECK(jobs_ranks(jobs, 0, entry_of(jobs, "b")->number, ranks, 4) == 1);
	CHECK(!strcmp(ranks[0].job, "b"));
	/* Reported figures stay. */
	job_rank_close(a, &train);
	CHECK(!train);
	CHECK(jobs_ranks(jobs, 0, 0, ranks, 2) == 2);
	CHECK(ranks[1].loaders == 1 && ranks[1].all.n[FIGURE_SAMPLES] == 120);
	job_rank_close(a, &eval);
	job_rank_close(b, &other);
	job_rank_close(b, &other);
	jobs_put(&a);
	jobs_put(&b);
	jobs_close(jobs);
}

static void test_sums_of_ranks_have_an_end(void)
{
	struct rank_figures figures = figures_of(RANK_FIGURES_MAX, 0);
	struct jobs_rank rank;
	struct job_rank *r;
	struct jobs *jobs;
	struct job *a;

	CHECK(!jobs_open(1, &jobs));
	a = jobs_get(jobs, 0, "a");
	r = job_rank_open(a, 0, 0);
	for (unsigned i = 0; i < 9; i++)
		job_report(a, r, &figures);
	CHECK(jobs_ranks(jobs, 0, 0, &rank, 1) == 1);
	CHECK(rank.all.n[FIGURE_SAMPLES] == RANK_FIGURES_MAX);
	job_rank_close(a, &r);
	jobs_put(&a);
	jobs_close(jobs);
}

/* The table stays bounded; those that are in use are not forgotten. */
static void test_ranks_are_forgotten(void)
{
	static struct jobs_rank ranks[JOBS_RANKS_MAX + 1];
	struct job_rank *r, *kept, *used[JOBS_RANKS_MAX];
	struct rank_figures figures = figures_of(1, 1);
	struct job *a, *b, *all[MANY];
	char name[JOBS_NAME_SIZE];
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	a = jobs_get(jobs, 0, "a");
	kept = job_rank_open(a, 0, 0);
	for (uint32_t i = 1; i < 2 * JOBS_RANKS_MAX; i++) {
		r = job_rank_open(a, i, 0);
		CHECK(r);
		job_report(a, r, &figures);
		job_rank_close(a, &r);
	}
	CHECK(jobs_ranks(jobs, 0, 0, ranks, JOBS_RANKS_MAX + 1) ==
	      JOBS_RANKS_MAX);
	CHECK(ranks[0].rank == 0);
	CHECK(ranks[JOBS_RANKS_MAX - 1].rank == 2 * JOBS_RANKS_MAX - 1);
	/* All are in use: no more then. */
	b = jobs_get(jobs, 0, "b");
	for (uint32_t i = 1; i < JOBS_RANKS_MAX; i++) {
		used[i] = job_rank_open(b, i, 0);
		CHECK(used[i]);
	}
	CHECK(!job_rank_open(b, 0, 0));
	job_report(b, NULL, &figures);
	for (uint32_t i = 1; i < JOBS_RANKS_MAX; i++)
		job_rank_close(b, &used[i]);
	/* Nor are they when their job is. */
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "job-%u", i);
		all[i] = jobs_get(jobs, 0, name);
		CHECK(all[i]);
	}
	CHECK(!entry_of(jobs, "a") && !entry_of(jobs, "b"));
	CHECK(!jobs_ranks(jobs, 0, 0, ranks, JOBS_RANKS_MAX));
	job_report(a, kept, &figures);
	job_rank_close(a, &kept);
	for (unsigned i = 0; i < MANY; i++)
		jobs_put(&all[i]);
	jobs_put(&a);
	jobs_put(&b);
	jobs_close(jobs);
}

/* A job that reads two datasets: together, and each by itself. */
static void test_datasets_are_counted_apart(void)
{
	struct rank_figures figures = figures_of(100, 7);
	struct jobs_count ways[JOBS_WAYS];
	struct timespec before, after;
	struct job *a1, *a2, *b2;
	struct job_rank *r1, *r2, *low;
	struct jobs_rank ranks[4];
	struct counters_sum sum;
	struct jobs *jobs;

	CHECK(!jobs_open(3, &jobs));
	before = jobs_changed(jobs, 1);
	a2 = jobs_get(jobs, 2, "a");
	b2 = jobs_get(jobs, 2, "b");
	after = jobs_changed(jobs, 1);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	a1 = jobs_get(jobs, 1, "a");
	CHECK(a1 && a1 != a2);
	job_connect(a1);
	job_connect(a2);
	job_add(a1, JOBS_DIRECT, 1, 10);
	job_add(a2, JOBS_ZEROCOPY, 2, 30);
	job_add(b2, JOBS_ZEROCOPY, 4, 50);
	job_stalled(a2, JOBS_ZEROCOPY);
	job_waited(a2, 1000);
	jobs_delivered(jobs, 0, ways);
	CHECK(ways[JOBS_DIRECT].bytes == 10 &&
	      ways[JOBS_ZEROCOPY].stalled == 1);
	CHECK(ways[JOBS_ZEROCOPY].batches == 6);
	jobs_delivered(jobs, 1, ways);
	CHECK(ways[JOBS_DIRECT].bytes == 10 && !ways[JOBS_ZEROCOPY].batches);
	jobs_delivery(jobs, 1, &sum);
	CHECK(sum.items == 1 && sum.bytes == 10 && !sum.input_wait_ns);
	jobs_delivery(jobs, 0, &sum);
	CHECK(sum.items == 7 && sum.input_wait_ns == 1000);
	/* One number, and so one entry. */
	CHECK(list(jobs) == 2 && entries[0].number < entries[1].number);
	CHECK(!strcmp(entries[0].name, "a") && entries[0].connections == 2);
	CHECK(entries[0].count.batches == 3 && entries[0].count.bytes == 40);
	CHECK(jobs_list(jobs, 0, 0, entries, 1) == 1);
	CHECK(entries[0].count.batches == 3);
	CHECK(jobs_list(jobs, 1, 0, entries, 3) == 1);
	CHECK(entries[0].count.bytes == 10 && entries[0].connections == 1);
	CHECK(jobs_list(jobs, 2, 0, entries, 3) == 2);
	CHECK(entries[0].count.bytes == 30 && entries[1].count.bytes == 50);
	r2 = job_rank_open(a2, 3, 8);
	r1 = job_rank_open(a1, 3, 8);
	low = job_rank_open(a1, 1, 8);
	job_report(a2, r2, &figures);
	job_report(a1, r1, &figures);
	CHECK(jobs_ranks(jobs, 0, 0, ranks, 4) == 2);
	CHECK(ranks[0].rank == 1 && ranks[1].rank == 3);
	CHECK(ranks[1].loaders == 2);
	CHECK(ranks[1].all.n[FIGURE_SAMPLES] == 200);
	CHECK(jobs_ranks(jobs, 0, 0, ranks, 1) == 1 && ranks[0].rank == 1);
	CHECK(jobs_ranks(jobs, 2, 0, ranks, 4) == 1);
	CHECK(ranks[0].rank == 3 && ranks[0].loaders == 1);
	CHECK(ranks[0].all.n[FIGURE_SAMPLES] == 100);
	job_rank_close(a1, &low);
	job_rank_close(a1, &r1);
	job_rank_close(a2, &r2);
	jobs_close(jobs);
}

/* If there is no memory to count with, nothing is counted. */
static void test_nothing(void)
{
	struct job *job = jobs_get(NULL, 0, "a");

	struct jobs_rank rank;
	struct job_rank *r = job_rank_open(NULL, 0, 0);

	CHECK(!job && !jobs_get_session(NULL, 0, 1));
	CHECK(!r && !jobs_ranks(NULL, 0, 0, &rank, 1));
	job_rank_close(NULL, &r);
	job_waited(job, 1);
	CHECK(!list(NULL));
	job_add(job, JOBS_DIRECT, 1, 1);
	job_stalled(job, JOBS_DIRECT);
	job_connect(job);
	job_disconnect(job);
	jobs_put(&job);
	jobs_close(NULL);
}

static void *count_a_lot(void *arg)
{
	struct jobs *jobs = arg;
	char name[JOBS_NAME_SIZE];

	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "job-%u", i % MANY);
		add(jobs, name, JOBS_ZEROCOPY, 1, 3);
		if (i % 100 == 0)
			CHECK(jobs_list(jobs, 0, i, &(struct jobs_entry){ 0 },
					1) <= 1);
	}
	return NULL;
}

static void test_many_threads(void)
{
	struct jobs_count ways[JOBS_WAYS];
	pthread_t threads[THREADS];
	struct jobs *jobs;

	CHECK(!jobs_open(1, &jobs));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, count_a_lot, jobs));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	jobs_delivered(jobs, 0, ways);
	CHECK(ways[JOBS_ZEROCOPY].batches == THREADS * ROUNDS);
	CHECK(ways[JOBS_ZEROCOPY].bytes == 3 * THREADS * ROUNDS);
	CHECK(list(jobs) == JOBS_MAX);
	jobs_close(jobs);
}

int main(void)
{
	test_counts_by_name_and_by_way();
	test_sessions();
	test_a_long_name_is_cut();
	test_the_least_recent_is_forgotten();
	test_jobs_in_use_are_forgotten_too();
	test_the_list_has_a_time_of_change();
	test_connections();
	test_ranks();
	test_sums_of_ranks_have_an_end();
	test_ranks_are_forgotten();
	test_datasets_are_counted_apart();
	test_nothing();
	test_many_threads();
	return 0;
}

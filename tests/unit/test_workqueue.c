/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/thread.h"
#include "fs/base/util/workqueue.h"
#include "tests/unit/t.h"

enum { THREADS = 16, ROOM = 24, JOBS = 3000, SLEEP_US = 300 };

/* The instructions of a test's jobs, and their results. */
struct scene {
	struct workqueue *queue;
	struct worker {
		struct scene *scene;
		atomic_bool busy;
	} workers[THREADS];
	uint64_t jobs; /* that the producer submits */
	uint64_t gate; /* this job waits until `open` */
	atomic_bool open;
	uint64_t fails;	      /* this job fails with -EIO */
	uint64_t fails_early; /* this one with -EBADMSG, before `fails` ends */
	atomic_bool failed_early;
	pthread_barrier_t *together; /* jobs wait here, if there is one */
	atomic_uint_fast64_t alive;  /* jobs submitted and not taken */
	atomic_uint_fast64_t most;   /* of these at once */
	atomic_uint_fast64_t ran;
	atomic_uint_fast64_t dropped;
};

struct job {
	struct scene *scene;
	uint64_t number;
	atomic_uint runs;
};

static const uint64_t NONE = UINT64_MAX;

static void sleep_us(uint64_t us)
{
	struct timespec t = { .tv_nsec = (long)us * 1000 };

	nanosleep(&t, NULL);
}

static void wait_for(atomic_bool *flag)
{
	while (!atomic_load(flag))
		sleep_us(100);
}

static int run_job(void *arg, void *job_arg)
{
	struct worker *w = arg;
	struct job *job = job_arg;
	struct scene *s = w->scene;
	struct rng rng = { .key = rng_mix(job->number) };
	int r = 0;

	CHECK(!atomic_exchange(&w->busy, true));
	CHECK(!atomic_fetch_add(&job->runs, 1));
	atomic_fetch_add(&s->ran, 1);
	if (s->together)
		pthread_barrier_wait(s->together);
	else if (rng_next(&rng) % 2)
		sleep_us(rng_next(&rng) % SLEEP_US);
	if (job->number == s->gate)
		wait_for(&s->open);
	if (job->number == s->fails && s->fails_early != NONE)
		wait_for(&s->failed_early);
	if (job->number == s->fails_early)
		r = -EBADMSG;
	if (job->number == s->fails)
		r = -EIO;
	atomic_store(&w->busy, false);
	return r;
}

static void drop_job(void *arg)
{
	struct job *job = arg;

	CHECK(atomic_load(&job->runs) <= 1);
	atomic_fetch_add(&job->scene->dropped, 1);
	free(job);
}

static void open_scene(struct scene *s, unsigned threads, size_t room)
{
	struct workqueue_setup setup = {
		.run = run_job,
		.drop = drop_job,
		.workers = s->workers,
		.worker_size = sizeof(*s->workers),
		.threads = threads,
		.room = room,
	};

	*s = (struct scene){
		.jobs = JOBS,
		.gate = NONE,
		.fails = NONE,
		.fails_early = NONE,
	};
	for (unsigned i = 0; i < threads; i++)
		s->workers[i].scene = s;
	CHECK(!workqueue_open(&setup, &s->queue));
}

static int submit_job(struct scene *s, uint64_t number, int timeout_ms)
{
	struct job *job = calloc(1, sizeof(*job));
	uint64_t alive;
	int r;

	CHECK(job);
	job->scene = s;
	job->number = number;
	r = workqueue_submit(s->queue, job, timeout_ms);
	if (r) {
		free(job);
		return r;
	}
	alive = atomic_fetch_add(&s->alive, 1) + 1;
	/* Below zero where the job was taken before it was counted. */
	if (alive < NONE / 2 && alive > atomic_load(&s->most))
		atomic_store(&s->most, alive);
	return 0;
}

/* The next job is this one, which has run. */
static void take_job(struct scene *s, uint64_t number)
{
	void *out = NULL;
	struct job *job;

	CHECK(!workqueue_take(s->queue, -1, &out));
	atomic_fetch_sub(&s->alive, 1);
	job = out;
	CHECK(job->number == number && atomic_load(&job->runs) == 1);
	free(job);
}

static void *submit_all(void *arg)
{
	struct scene *s = arg;

	for (uint64_t i = 0; i < s->jobs; i++)
		CHECK(!submit_job(s, i, -1));
	workqueue_end(s->queue);
	return NULL;
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	CHECK(!thread_start(thread, fn, arg));
}

static void results_come_in_order(void)
{
	pthread_t producer;
	struct scene s;
	void *job;

	open_scene(&s, THREADS, ROOM);
	start(&producer, submit_all, &s);
	for (uint64_t i = 0; i < JOBS; i++)
		take_job(&s, i);
	CHECK(workqueue_take(s.queue, -1, &job) == -ENODATA);
	pthread_join(producer, NULL);
	CHECK(atomic_load(&s.ran) == JOBS);
	/* One more where a job was taken and is not yet subtracted. */
	CHECK(atomic_load(&s.most) <= ROOM + 1);
	workqueue_close(s.queue);
	CHECK(!atomic_load(&s.dropped));
}

static void one_thread_may_submit_and_take(void)
{
	uint64_t submitted = 0;
	struct scene s;

	open_scene(&s, THREADS, ROOM);
	for (uint64_t i = 0; i < JOBS; i++) {
		while (submitted < JOBS && !submit_job(&s, submitted, 0))
			submitted++;
		CHECK(submitted - i == (i + ROOM < JOBS ? ROOM : JOBS - i));
		take_job(&s, i);
	}
	workqueue_close(s.queue);
	CHECK(atomic_load(&s.ran) == JOBS && !atomic_load(&s.dropped));
}

static void jobs_run_at_the_same_time(void)
{
	pthread_barrier_t together;
	struct scene s;

	pthread_barrier_init(&together, NULL, THREADS);
	open_scene(&s, THREADS, ROOM);
	s.together = &together;
	for (uint64_t i = 0; i < THREADS; i++)
		CHECK(!submit_job(&s, i, 0));
	for (uint64_t i = 0; i < THREADS; i++)
		take_job(&s, i);
	workqueue_close(s.queue);
	pthread_barrier_destroy(&together);
}

/* While the oldest job takes its time, no more jobs than `room` are let in. */
static void the_queue_is_bounded(void)
{
	struct scene s;
	void *job;

	open_scene(&s, THREADS, ROOM);
	s.gate = 0;
	for (uint64_t i = 0; i < ROOM; i++)
		CHECK(!submit_job(&s, i, 0));
	CHECK(submit_job(&s, ROOM, 0) == -EAGAIN);
	CHECK(workqueue_take(s.queue, 20, &job) == -EAGAIN);
	CHECK(submit_job(&s, ROOM, 20) == -EAGAIN);
	atomic_store(&s.open, true);
	take_job(&s, 0);
	CHECK(!submit_job(&s, ROOM, 0));
	CHECK(submit_job(&s, ROOM + 1, 0) == -EAGAIN);
	for (uint64_t i = 1; i <= ROOM; i++)
		take_job(&s, i);
	workqueue_close(s.queue);
}

static void timeouts_are_kept(void)
{
	struct scene s;
	int64_t before = clock_ns();
	void *job;

	open_scene(&s, 1, 1);
	CHECK(workqueue_take(s.queue, 50, &job) == -EAGAIN);
	CHECK(clock_ns() - before >= 50 * 1000000);
	s.gate = 0;
	CHECK(!submit_job(&s, 0, 0));
	before = clock_ns();
	CHECK(submit_job(&s, 1, 50) == -EAGAIN);
	CHECK(clock_ns() - before >= 50 * 1000000);
	atomic_store(&s.open, true);
	take_job(&s, 0);
	workqueue_end(s.queue);
	CHECK(workqueue_take(s.queue, -1, &job) == -ENODATA);
	workqueue_close(s.queue);
}

/* If there is one thread, the jobs that run are certain. */
static void an_error_ends_the_queue(void)
{
	struct scene s;
	void *job;

	open_scene(&s, 1, ROOM);
	s.gate = 0;
	s.fails = 7;
	for (uint64_t i = 0; i < ROOM; i++)
		CHECK(!submit_job(&s, i, 0));
	atomic_store(&s.open, true);
	for (uint64_t i = 0; i < 7; i++)
		take_job(&s, i);
	CHECK(workqueue_take(s.queue, -1, &job) == -EIO);
	CHECK(workqueue_take(s.queue, -1, &job) == -EIO);
	CHECK(submit_job(&s, ROOM, -1) == -EIO);
	sleep_us(20000);
	CHECK(atomic_load(&s.ran) == 8);
	workqueue_close(s.queue);
	CHECK(atomic_load(&s.ran) == 8);
	CHECK(atomic_load(&s.dropped) == ROOM - 7);
}

static void *submit_until_it_ends(void *arg)
{
	struct scene *s = arg;
	uint64_t i = 0;
	int r;

	while (!(r = submit_job(s, i, -1)))
		i++;
	return (void *)(intptr_t)r;
}

/*
 * The producer hears of the failure that comes first, even while it waits for
 * room; the consumer gets all jobs before the oldest one that fails.
 */
static void the_oldest_error_is_returned(void)
{
	enum { BAD = 1000 };
	pthread_t producer;
	struct scene s;
	void *job, *r;

	open_scene(&s, THREADS, ROOM);
	s.fails = BAD;
	s.fails_early = BAD + 5;
	start(&producer, submit_until_it_ends, &s);
	for (uint64_t i = 0; i < BAD; i++)
		take_job(&s, i);
	pthread_join(producer, &r);
	CHECK((intptr_t)r == -EBADMSG);
	atomic_store(&s.failed_early, true);
	CHECK(workqueue_take(s.queue, -1, &job) == -EIO);
	workqueue_close(s.queue);
	CHECK(atomic_load(&s.ran) <= BAD + ROOM);
	CHECK(atomic_load(&s.dropped) == atomic_load(&s.alive));
}

static void *take_until_it_ends(void *arg)
{
	struct scene *s = arg;
	void *job;

	return (void *)(intptr_t)workqueue_take(s->queue, -1, &job);
}

/* One waits for a result, the other for room, when the third cancels. */
static void a_cancel_ends_all_waiting(void)
{
	pthread_t producer, consumer;
	struct scene s;
	void *r;

	open_scene(&s, THREADS, ROOM);
	s.gate = 0;
	start(&producer, submit_until_it_ends, &s);
	start(&consumer, take_until_it_ends, &s);
	while (atomic_load(&s.alive) < ROOM)
		sleep_us(100);
	sleep_us(20000);
	workqueue_cancel(s.queue);
	pthread_join(producer, &r);
	CHECK((intptr_t)r == -ECANCELED);
	pthread_join(consumer, &r);
	CHECK((intptr_t)r == -ECANCELED);
	/* The job that runs still owns its worker. */
	atomic_store(&s.open, true);
	workqueue_close(s.queue);
	CHECK(atomic_load(&s.dropped) == ROOM);
}

/* Threads without work wait; a cancel ends them, too. */
static void an_idle_queue_closes(void)
{
	struct scene s;
	void *job;

	workqueue_close(NULL);
	open_scene(&s, THREADS, ROOM);
	workqueue_close(s.queue);
	open_scene(&s, THREADS, ROOM);
	CHECK(!submit_job(&s, 0, 0));
	take_job(&s, 0);
	workqueue_cancel(s.queue);
	CHECK(workqueue_take(s.queue, -1, &job) == -ECANCELED);
	CHECK(submit_job(&s, 1, -1) == -ECANCELED);
	workqueue_close(s.queue);
	CHECK(!atomic_load(&s.dropped));
}

/* Closed at a random moment, a queue frees what it holds, and each job once. */
static void close_drops_remaining_jobs(void)
{
	for (uint64_t k = 0; k < 60; k++) {
		uint64_t taken = rng_mix(k) % 50, submitted = 0;
		struct scene s;

		open_scene(&s, THREADS, ROOM);
		for (uint64_t i = 0; i < taken; i++) {
			while (!submit_job(&s, submitted, 0))
				submitted++;
			take_job(&s, i);
		}
		workqueue_close(s.queue);
		CHECK(atomic_load(&s.dropped) == submitted - taken);
		CHECK(atomic_load(&s.ran) >= taken);
	}
}

int main(void)
{
	results_come_in_order();
	one_thread_may_submit_and_take();
	jobs_run_at_the_same_time();
	the_queue_is_bounded();
	timeouts_are_kept();
	an_error_ends_the_queue();
	the_oldest_error_is_returned();
	a_cancel_ends_all_waiting();
	an_idle_queue_closes();
	close_drops_remaining_jobs();
	return 0;
}

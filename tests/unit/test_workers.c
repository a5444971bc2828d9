/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "fs/base/util/thread.h"
#include "fs/mount/fuse/uring.h"
#include "fs/mount/fuse/workers.h"
#include "tests/unit/t.h"

enum { PRODUCERS = 4, ENTRIES = 16, ROUNDS = 500, THREADS = 8, IDLE = 2 };

/* A request; it is there again when it has its reply, as an entry of a ring. */
struct item {
	struct uring_entry entry; /* first */
	atomic_bool is_out;
	unsigned plain; /* written by the thread that has the item */
};

struct scene {
	struct workers *workers;
	struct item items[PRODUCERS][ENTRIES];
	atomic_uint runs;
	atomic_uint running;
	atomic_uint most;
	atomic_bool blocks; /* run() waits while this is set */
	atomic_uint cpus;   /* of the thread that ran last */
};

static void pause_us(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static void run(void *arg, struct uring_entry *entry)
{
	struct scene *s = arg;
	struct item *item = (struct item *)entry;
	unsigned now = atomic_fetch_add(&s->running, 1) + 1;
	unsigned most = atomic_load(&s->most);

	while (now > most &&
	       !atomic_compare_exchange_weak(&s->most, &most, now))
		;
	CHECK(atomic_load(&item->is_out));
	atomic_store(&s->cpus, thread_usable_cpus());
	if (item->plain++ % 7 == 0)
		pause_us(200);
	while (atomic_load(&s->blocks))
		pause_us(100);
	atomic_fetch_sub(&s->running, 1);
	atomic_fetch_add(&s->runs, 1);
	atomic_store(&item->is_out, false);
}

static struct scene *new_scene(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	CHECK(s);
	CHECK(!workers_open(THREADS, IDLE, run, s, &s->workers));
	return s;
}

static void push(struct scene *s, struct item *item)
{
	CHECK(!atomic_exchange(&item->is_out, true));
	item->plain++;
	CHECK(!workers_push(s->workers, &item->entry));
}

static void wait_for(const struct item *item)
{
	while (atomic_load(&item->is_out))
		pause_us(50);
}

static void end(struct scene *s)
{
	workers_stop(s->workers);
	workers_close(s->workers);
	free(s);
}

/* --- tests --- */

struct producer {
	struct scene *scene;
	struct item *items;
};

static void *produce(void *arg)
{
	const struct producer *p = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		wait_for(&p->items[i % ENTRIES]);
		push(p->scene, &p->items[i % ENTRIES]);
	}
	for (unsigned i = 0; i < ENTRIES; i++)
		wait_for(&p->items[i]);
	return NULL;
}

static void every_request_runs_once(void)
{
	struct scene *s = new_scene();
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS];

	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ s, s->items[i] };
		CHECK(!thread_start(&threads[i], produce, &producers[i]));
	}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&s->runs) == PRODUCERS * ROUNDS);
	CHECK(atomic_load(&s->most) <= THREADS);
	end(s);
}

/* While some wait, others run, up to the limit. */
static void requests_that_wait_hold_up_no_others(void)
{
	struct scene *s = new_scene();

	atomic_store(&s->blocks, true);
	for (unsigned i = 0; i < THREADS; i++)
		push(s, &s->items[0][i]);
	while (atomic_load(&s->running) < THREADS)
		pause_us(100);
	push(s, &s->items[1][0]);
	pause_us(2000);
	CHECK(atomic_load(&s->running) == THREADS);
	atomic_store(&s->blocks, false);
	wait_for(&s->items[1][0]);
	CHECK(atomic_load(&s->most) == THREADS);
	end(s);
}

static void *push_from_one_cpu(void *arg)
{
	struct scene *s = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
	CHECK(thread_usable_cpus() == 1);
	push(s, &s->items[0][0]);
	return NULL;
}

/* The threads of rings are bound to a CPU each. */
static void threads_use_all_cpus(void)
{
	struct scene *s = new_scene();
	pthread_t thread;

	CHECK(!thread_start(&thread, push_from_one_cpu, s));
	pthread_join(thread, NULL);
	wait_for(&s->items[0][0]);
	CHECK(atomic_load(&s->cpus) == thread_usable_cpus());
	end(s);
}

static void *stop(void *arg)
{
	workers_stop(arg);
	return NULL;
}

/* The end waits for requests that run, and starts no others. */
static void the_end_waits(void)
{
	struct scene *s = new_scene();
	pthread_t thread;
	unsigned n = 0;
	int r;

	atomic_store(&s->blocks, true);
	for (unsigned i = 0; i < THREADS + 1; i++)
		push(s, &s->items[0][i]);
	while (atomic_load(&s->running) < THREADS)
		pause_us(100);
	CHECK(!thread_start(&thread, stop, s->workers));
	do {
		pause_us(5000);
		CHECK(n < ENTRIES);
		r = workers_push(s->workers, &s->items[1][n++].entry);
	} while (!r);
	CHECK(r == -ENOTCONN);
	CHECK(atomic_load(&s->running) == THREADS);
	atomic_store(&s->blocks, false);
	pthread_join(thread, NULL);
	CHECK(atomic_load(&s->runs) == THREADS);
	CHECK(atomic_load(&s->items[0][THREADS].is_out));
	end(s);
}

int main(void)
{
	every_request_runs_once();
	requests_that_wait_hold_up_no_others();
	threads_use_all_cpus();
	the_end_waits();
	workers_stop(NULL);
	workers_close(NULL);
	return 0;
}

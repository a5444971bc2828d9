/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/data/engine/pool.h"
#include "fs/data/engine/slot.h"
#include "tests/unit/t.h"

/* The clock, so many seconds later. */
static _Atomic time_t later_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += atomic_load(&later_s);
	return (int)r;
}

enum { MIB = 1 << 20, BATCHES = 12, THREADS = 6, ROUNDS = 400 };

struct fixture {
	struct slots *slots;
	struct batch *batches[BATCHES];
	atomic_int result; /* of collating */
	atomic_uint collated;
	atomic_bool has_failures;
	atomic_bool is_held; /* nothing may be collated meanwhile */
	struct rng rng;	     /* of failures; any thread's */
	pthread_mutex_t lock;
	unsigned fails_of; /* one in so many; 0: none */
	int takes_s;	   /* seconds to collate a batch, or 0 */
};

/* A batch of which nothing but the size matters. */
static struct batch *batch_of(uint64_t number, uint64_t size)
{
	struct batch *b = calloc(1, sizeof(*b));

	CHECK(b);
	atomic_init(&b->refs, 1);
	b->key.number = number;
	b->key.spec = &b->spec;
	b->vfile.size = size;
	return b;
}

static bool fails_now(struct fixture *f)
{
	bool fails;

	pthread_mutex_lock(&f->lock);
	fails = f->fails_of && rng_next(&f->rng) % f->fails_of == 0;
	pthread_mutex_unlock(&f->lock);
	return fails;
}

static int collate(void *arg, const struct batch *batch, void *buf,
		   uint64_t *marks)
{
	struct fixture *f = arg;

	CHECK(!atomic_load(&f->is_held));
	atomic_fetch_add(&later_s, f->takes_s);
	memset(buf, (int)batch->key.number, batch->vfile.size);
	atomic_fetch_add(&f->collated, 1);
	for (int i = 0; i < 4; i++)
		sched_yield();
	*marks = atomic_load(&f->has_failures) ? 1 + batch->key.number : 0;
	return fails_now(f) ? -EIO : atomic_load(&f->result);
}

enum { SHORT_MS = 100, LONG_MS = 20000 };

static void set_up(struct fixture *f, uint64_t limit, bool is_hard,
		   uint64_t size)
{
	const struct slots_options options = {
		.limit = is_hard ? limit : 64 * limit,
		.keep = limit,
		.wait_ms = LONG_MS,
		.collate = collate,
		.arg = f,
	};

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	CHECK(!slots_open(&options, &f->slots));
	for (uint64_t i = 0; i < BATCHES; i++)
		f->batches[i] = batch_of(i, size);
}

/* Opens the slots again, with other options. */
static void reopen(struct fixture *f, struct slots_options *options)
{
	options->collate = collate;
	options->arg = f;
	slots_close(f->slots);
	CHECK(!slots_open(options, &f->slots));
}

static void tear_down(struct fixture *f)
{
	slots_close(f->slots);
	for (size_t i = 0; i < BATCHES; i++) {
		CHECK(atomic_load(&f->batches[i]->refs) == 1);
		batch_put(&f->batches[i]);
	}
	pthread_mutex_destroy(&f->lock);
}

static struct slot *get(struct fixture *f, unsigned i)
{
	struct slot *slot;

	CHECK(!slots_get(f->slots, f->batches[i], &slot));
	return slot;
}

static void touch(struct fixture *f, unsigned i)
{
	struct slot *slot = get(f, i);

	slot_put(&slot);
}

static struct slots_stats stats_of(struct fixture *f)
{
	struct slots_stats s;

	slots_stats(f->slots, &s);
	return s;
}

static bool is_whole(const struct fixture *f, const struct slot *slot,
		     unsigned i)
{
	const uint8_t *bytes = slot_bytes(slot);

	for (uint64_t k = 0; k < f->batches[i]->vfile.size; k += 997) {
		if (bytes[k] != i)
			return false;
	}
	return true;
}

static void a_batch_is_collated_once_for_all_readers(void)
{
	struct fixture f;
	struct slot *a, *b;

	set_up(&f, 8 * MIB, false, MIB);
	a = get(&f, 3);
	b = get(&f, 3);
	CHECK(a == b && is_whole(&f, a, 3));
	slot_put(&a);
	slot_put(&b);
	CHECK(!a);
	slot_put(&a);
	touch(&f, 3);
	CHECK(atomic_load(&f.collated) == 1);
	CHECK(stats_of(&f).collated == 1 && stats_of(&f).shared == 2);
	tear_down(&f);
	slots_close(NULL);
}

static void slots_in_use_are_not_recycled(void)
{
	struct fixture f;
	struct slot *held;

	set_up(&f, 2 * MIB, false, MIB);
	held = get(&f, 0);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 1; i < BATCHES; i++) {
			struct slot *other = get(&f, i);

			CHECK(slot_id(other) != slot_id(held));
			slot_put(&other);
		}
	}
	CHECK(is_whole(&f, held, 0));
	slot_put(&held);
	tear_down(&f);
}

static void memory_of_read_slots_is_reused(void)
{
	struct fixture f;

	set_up(&f, 64 * MIB, false, MIB);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < BATCHES; i++)
			touch(&f, i);
	}
	CHECK(stats_of(&f).slots <= 4);
	tear_down(&f);
}

static void abandoned_memory_holds_no_other_batch(void)
{
	struct slot *none = NULL, *slot;
	struct fixture f;
	uint64_t id;

	set_up(&f, 2 * MIB, false, MIB);
	slot_abandon(&none);
	slot = get(&f, 0);
	id = slot_id(slot);
	slot_abandon(&slot);
	CHECK(!slot);
	for (unsigned i = 1; i < BATCHES; i++) {
		slot = get(&f, i);
		CHECK(slot_id(slot) != id);
		slot_put(&slot);
	}
	tear_down(&f);
}

/* --- a hard limit --- */

static void *get_second(void *arg)
{
	struct fixture *f = arg;

	touch(f, 1);
	return NULL;
}

static void without_room_a_reader_waits(void)
{
	struct fixture f;
	struct slot *held;
	pthread_t thread;

	set_up(&f, 2 * MIB, true, MIB);
	held = get(&f, 0);
	atomic_store(&f.is_held, true);
	CHECK(!pthread_create(&thread, NULL, get_second, &f));
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK(slots_prepare(f.slots, f.batches[2]) == -EAGAIN);
	CHECK(is_whole(&f, held, 0));
	atomic_store(&f.is_held, false);
	slot_put(&held);
	pthread_join(thread, NULL);
	CHECK(stats_of(&f).bytes == 2 * MIB && stats_of(&f).collated == 2);
	tear_down(&f);
}

/* There is no room for the spare room of large pieces, nor need for it. */
static void a_batch_may_be_as_large_as_the_limit(void)
{
	struct fixture f;
	struct slot *slot;

	set_up(&f, 18 * MIB, true, 18 * MIB);
	slot = get(&f, 7);
	CHECK(slot_capacity(slot) == 18 * MIB && is_whole(&f, slot, 7));
	slot_put(&slot);
	touch(&f, 8);
	f.batches[9]->vfile.size++;
	CHECK(slots_get(f.slots, f.batches[9], &slot) == -EFBIG);
	CHECK(slots_prepare(f.slots, f.batches[9]) == -EFBIG);
	f.batches[10]->vfile.size = UINT64_MAX - 1;
	CHECK(slots_get(f.slots, f.batches[10], &slot) < 0);
	tear_down(&f);
}

static void *get_at_random(void *arg)
{
	static atomic_uint threads;
	struct rng rng = { .key = atomic_fetch_add(&threads, 1) };
	struct fixture *f = arg;
	struct slot *slot;
	unsigned i;
	int r;

	for (int round = 0; round < ROUNDS; round++) {
		i = (unsigned)(rng_next(&rng) % BATCHES);
		r = rng_next(&rng) % 3;
		if (!r) {
			r = slots_prepare(f->slots, f->batches[i]);
			CHECK(!r || r == -EAGAIN || r == -EIO);
			continue;
		}
		r = slots_get(f->slots, f->batches[i], &slot);
		CHECK(!r || r == -EIO);
		if (r)
			continue;
		CHECK(is_whole(f, slot, i));
		CHECK(rng_next(&rng) % 8 ||
		      !slots_failed(f->slots, f->batches[i]));
		slot_put(&slot);
	}
	return NULL;
}

static void run_threads(struct fixture *f, void *(*body)(void *))
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, body, f));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Readers, failures and batches without a reader release memory; a thread that
   waits for memory wakes up each time. */
static void no_thread_waits_indefinitely(void)
{
	struct fixture f;

	for (uint64_t room = 1; room <= 3; room++) {
		set_up(&f, room * 2 * MIB, true, MIB / 2);
		f.fails_of = 3;
		run_threads(&f, get_at_random);
		CHECK(stats_of(&f).bytes <= room * 2 * MIB);
		tear_down(&f);
	}
}

/* A reader that keeps its slot does not stop others for longer than that. */
static void waiting_ends(void)
{
	struct slot *held, *none = NULL;
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	reopen(&f, &(struct slots_options){ .limit = 2 * MIB,
					    .keep = 2 * MIB,
					    .wait_ms = SHORT_MS });
	held = get(&f, 0);
	CHECK(slots_get(f.slots, f.batches[1], &none) == -ENOMEM && !none);
	CHECK(is_whole(&f, held, 0));
	slot_put(&held);
	/* The one that gave up is in no other's way. */
	touch(&f, 1);
	tear_down(&f);
}

struct line {
	struct fixture *f;
	unsigned batch;
	atomic_uint *served;
	unsigned place; /* in the order of being served */
};

static void *stand_in_line(void *arg)
{
	struct line *l = arg;
	struct slot *slot = get(l->f, l->batch);

	l->place = atomic_fetch_add(l->served, 1);
	slot_put(&slot);
	return NULL;
}

/* A batch that needs all the memory is not passed by a smaller one. */
static void waiting_is_in_turn(void)
{
	atomic_uint served = 0;
	struct line lines[2];
	pthread_t threads[2];
	struct slot *a, *b;
	struct fixture f;

	set_up(&f, 4 * MIB, true, MIB);
	f.batches[2]->vfile.size = 4 * MIB;
	a = get(&f, 0);
	b = get(&f, 1);
	for (unsigned i = 0; i < 2; i++) {
		lines[i] = (struct line){ &f, 2 + i, &served, 9 };
		CHECK(!pthread_create(&threads[i], NULL, stand_in_line,
				      &lines[i]));
		while (stats_of(&f).waiting <= i)
			sched_yield();
	}
	slot_put(&a);
	CHECK(slots_prepare(f.slots, f.batches[4]) == -EAGAIN);
	CHECK(stats_of(&f).waiting == 2 && !atomic_load(&served));
	slot_put(&b);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(lines[0].place == 0 && lines[1].place == 1);
	tear_down(&f);
}

/* A batch whose memory others hold does not stop smaller ones for longer than
   half a second. */
static void a_batch_in_vain_is_passed(void)
{
	atomic_uint served = 0;
	struct line large;
	pthread_t thread;
	struct fixture f;
	struct slot *a;
	int64_t begin;

	set_up(&f, 4 * MIB, true, MIB);
	f.batches[2]->vfile.size = 4 * MIB;
	a = get(&f, 0);
	large = (struct line){ &f, 2, &served, 9 };
	CHECK(!pthread_create(&thread, NULL, stand_in_line, &large));
	while (!stats_of(&f).waiting)
		sched_yield();
	begin = clock_ns();
	touch(&f, 1);
	CHECK(clock_ns() - begin < LONG_MS / 4 * 1000000LL);
	CHECK(slots_prepare(f.slots, f.batches[4]) == -EAGAIN);
	CHECK(stats_of(&f).waiting == 1 && !atomic_load(&served));
	slot_put(&a);
	CHECK(!pthread_join(thread, NULL) && !large.place);
	tear_down(&f);
}

static void all_memory_is_charged(void)
{
	struct budget_stats stats;
	struct budget *budget;
	struct fixture f;
	struct slot *slot;

	CHECK(!budget_open(4 * MIB + 4 * MIB / 15 + 1, NULL, &budget));
	set_up(&f, 64 * MIB, true, MIB);
	reopen(&f, &(struct slots_options){ .limit = 64 * MIB,
					    .keep = 64 * MIB,
					    .budget = budget });
	for (unsigned i = 0; i < BATCHES; i++)
		touch(&f, i);
	slot = get(&f, 0);
	budget_stats(budget, &stats);
	CHECK(stats.used[BUDGET_SLOTS] == stats_of(&f).bytes);
	CHECK(stats.used[BUDGET_SLOTS] <= 4 * MIB);
	CHECK(slots_reclaim(f.slots));
	CHECK(!slots_reclaim(f.slots) && stats_of(&f).bytes == 2 * MIB);
	slot_put(&slot);
	tear_down(&f);
	budget_stats(budget, &stats);
	CHECK(!stats.used[BUDGET_SLOTS]);
	budget_close(budget);
}

/* --- failures --- */

static void *get_in_vain(void *arg)
{
	struct fixture *f = arg;
	struct slot *slot = NULL;

	CHECK(slots_get(f->slots, f->batches[5], &slot) == -EIO && !slot);
	return NULL;
}

static void all_waiters_get_a_failure_and_the_next_tries_again(void)
{
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	atomic_store(&f.result, -EIO);
	run_threads(&f, get_in_vain);
	CHECK(!stats_of(&f).collated);
	atomic_store(&f.result, 0);
	touch(&f, 5);
	CHECK(stats_of(&f).collated == 1);
	tear_down(&f);
}

static void samples_that_failed_are_noted(void)
{
	struct fixture f;
	struct slot *slot;

	set_up(&f, 8 * MIB, false, MIB);
	touch(&f, 0);
	atomic_store(&f.has_failures, true);
	touch(&f, 1);
	CHECK(!slots_failed(f.slots, f.batches[0]));
	CHECK(slots_failed(f.slots, f.batches[1]));
	CHECK(!slots_failed(f.slots, f.batches[2]));
	slot = get(&f, 1);
	CHECK(slot_marks(slot) == 2);
	slot_put(&slot);
	slot = get(&f, 0);
	CHECK(!slot_marks(slot));
	slot_put(&slot);
	tear_down(&f);
}

/* --- ahead of readers --- */

static void prefetched_slots_wait_for_their_reader(void)
{
	struct fixture f;

	set_up(&f, 4 * MIB, true, 2 * MIB);
	CHECK(!slots_prepare(f.slots, f.batches[0]));
	CHECK(!slots_prepare(f.slots, f.batches[0]));
	CHECK(!slots_prepare(f.slots, f.batches[1]));
	CHECK(slots_prepare(f.slots, f.batches[2]) == -EAGAIN);
	CHECK(stats_of(&f).prefetched == 2 && !stats_of(&f).wasted);
	/* The current reader has precedence over a prefetched batch. */
	touch(&f, 2);
	CHECK(stats_of(&f).wasted == 1);
	touch(&f, 0);
	CHECK(stats_of(&f).collated == 3 && stats_of(&f).shared == 1);
	/* A batch that was read makes room. */
	CHECK(!slots_prepare(f.slots, f.batches[3]));
	tear_down(&f);
}

/* Where there is room for one of three, each costs what is needed last. */
static void the_slot_needed_last_is_evicted(void)
{
	struct fixture f;

	set_up(&f, 6 * MIB, true, 2 * MIB);
	f.batches[9]->key.epoch = 1;
	CHECK(!slots_prepare(f.slots, f.batches[3]));
	CHECK(!slots_prepare(f.slots, f.batches[9]));
	CHECK(!slots_prepare(f.slots, f.batches[4]));
	touch(&f, 2);
	touch(&f, 3);
	touch(&f, 4);
	CHECK(stats_of(&f).collated == 4 && stats_of(&f).wasted == 1);
	tear_down(&f);
}

/* Another reader that has been idle for longer keeps less, from its end on. */
static void the_reader_idle_for_longest_makes_room(void)
{
	struct fixture f;

	set_up(&f, 6 * MIB, true, 2 * MIB);
	f.batches[7]->spec.seed = f.batches[8]->spec.seed = 1;
	CHECK(!slots_prepare(f.slots, f.batches[7]));
	CHECK(!slots_prepare(f.slots, f.batches[8]));
	CHECK(!slots_prepare(f.slots, f.batches[1]));
	touch(&f, 0);
	touch(&f, 1);
	touch(&f, 7);
	CHECK(stats_of(&f).collated == 4 && stats_of(&f).wasted == 1);
	tear_down(&f);
}

/* --- in the middle of a batch --- */

static void read_piece(struct fixture *f, unsigned i,
		       struct slot_reader *reader, uint64_t bytes)
{
	struct slot *slot = get(f, i);

	slot_note_read(slot, reader, bytes);
	slot_put(&slot);
}

static void begin(struct fixture *f, unsigned i)
{
	struct slot_reader reader = { 0 };

	read_piece(f, i, &reader, 1);
}

static bool is_free(struct fixture *f)
{
	return !slots_prepare(f->slots, f->batches[1]);
}

static void completely_read_slots_are_evicted(void)
{
	struct slot_reader reader = { 0 };
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	read_piece(&f, 0, &reader, 1);
	read_piece(&f, 0, &reader, MIB - 1);
	CHECK(is_free(&f) && stats_of(&f).collated == 2);
	tear_down(&f);
}

/* A program may read the header of a batch file, and then all of it. */
static void a_piece_may_be_read_twice(void)
{
	struct slot_reader reader = { 0 };
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	read_piece(&f, 0, &reader, 1);
	read_piece(&f, 0, &reader, MIB);
	CHECK(is_free(&f));
	tear_down(&f);
}

/* Its reader is waited for: a machine may take longer than that to come from
   one line to the next, though not each time. */
static void begun_slots_wait_for_their_reader(void)
{
	struct fixture f;
	bool is_kept = false;

	set_up(&f, 2 * MIB, true, MIB);
	for (int i = 0; i < 20 && !is_kept; i++) {
		begin(&f, 0);
		is_kept = slots_prepare(f.slots, f.batches[1]) == -EAGAIN;
	}
	CHECK(is_kept);
	tear_down(&f);
}

/* Its reader is waited for as long as another try would take, up to 5 s. */
static void expensive_slots_stay_longer(void)
{
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	f.takes_s = 3;
	begin(&f, 0);
	atomic_fetch_add(&later_s, 2);
	CHECK(slots_prepare(f.slots, f.batches[1]) == -EAGAIN);
	atomic_fetch_add(&later_s, 2);
	CHECK(!slots_prepare(f.slots, f.batches[1]));
	f.takes_s = 60;
	touch(&f, 1);
	begin(&f, 0);
	atomic_fetch_add(&later_s, 6);
	CHECK(!slots_prepare(f.slots, f.batches[1]));
	tear_down(&f);
	/* Timed waits of other tests take the time of this clock. */
	atomic_store(&later_s, 0);
}

static void a_reader_that_leaves_early_is_not_waited_for(void)
{
	struct slot_reader reader = { 0 };
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	slots_leave(f.slots, f.batches[0], &reader);
	for (int i = 0; i < 20; i++) {
		read_piece(&f, 0, &reader, 1);
		slots_leave(f.slots, f.batches[0], &reader);
		CHECK(is_free(&f));
		touch(&f, 1);
	}
	tear_down(&f);
}

/* The reply to its last request can be there before those to earlier ones, and
   it closes the file before they are done. */
static void pieces_may_end_in_any_order(void)
{
	struct slot_reader reader = { 0 };
	struct slot *first, *last;
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	for (int i = 0; i < 3; i++) {
		first = get(&f, 0);
		last = get(&f, 0);
		slot_note_read(last, &reader, MIB - 1);
		slot_note_read(first, &reader, 1);
		slot_put(&last);
		slots_leave(f.slots, f.batches[0], &reader);
		slot_put(&first);
		CHECK(is_free(&f));
		touch(&f, 1);
	}
	tear_down(&f);
}

/* However much others have read. */
static void each_reader_is_waited_for(void)
{
	struct slot_reader readers[2] = { 0 };
	struct fixture f;
	bool is_kept = false;

	set_up(&f, 2 * MIB, true, MIB);
	for (int i = 0; i < 20 && !is_kept; i++) {
		read_piece(&f, 0, &readers[0], MIB / 2);
		read_piece(&f, 0, &readers[1], MIB / 2);
		is_kept = !is_free(&f);
		slots_leave(f.slots, f.batches[0], &readers[0]);
		is_kept = is_kept && !is_free(&f);
		slots_leave(f.slots, f.batches[0], &readers[1]);
		CHECK(is_free(&f));
		touch(&f, 1);
	}
	CHECK(is_kept);
	tear_down(&f);
}

/* The slot of its first pieces may have lost the batch since. */
static void another_slot_waits_for_the_rest(void)
{
	struct slot_reader early = { 0 }, late = { 0 };
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	read_piece(&f, 0, &early, 1);
	read_piece(&f, 0, &late, MIB / 2);
	touch(&f, 1);
	read_piece(&f, 0, &late, MIB / 2);
	CHECK(is_free(&f));
	touch(&f, 1);
	touch(&f, 0);
	slots_leave(f.slots, f.batches[0], &early);
	CHECK(is_free(&f) && stats_of(&f).collated == 6);
	tear_down(&f);
}

static void a_reader_that_stops_holds_no_reader_up(void)
{
	struct fixture f;

	set_up(&f, 2 * MIB, true, MIB);
	begin(&f, 0);
	begin(&f, 1);
	touch(&f, 2);
	CHECK(stats_of(&f).collated == 3);
	tear_down(&f);
}

int main(void)
{
	a_batch_is_collated_once_for_all_readers();
	slots_in_use_are_not_recycled();
	memory_of_read_slots_is_reused();
	abandoned_memory_holds_no_other_batch();
	without_room_a_reader_waits();
	a_batch_may_be_as_large_as_the_limit();
	no_thread_waits_indefinitely();
	waiting_ends();
	waiting_is_in_turn();
	a_batch_in_vain_is_passed();
	all_memory_is_charged();
	all_waiters_get_a_failure_and_the_next_tries_again();
	samples_that_failed_are_noted();
	prefetched_slots_wait_for_their_reader();
	the_slot_needed_last_is_evicted();
	the_reader_idle_for_longest_makes_room();
	completely_read_slots_are_evicted();
	a_piece_may_be_read_twice();
	begun_slots_wait_for_their_reader();
	expensive_slots_stay_longer();
	a_reader_that_leaves_early_is_not_waited_for();
	pieces_may_end_in_any_order();
	each_reader_is_waited_for();
	another_slot_waits_for_the_rest();
	a_reader_that_stops_holds_no_reader_up();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/bytes.h"
#include "fs/scope.h"
#include "fs/thread.h"
#include "loader/cuda.h"
#include "loader/stage.h"

/* Rows a worker takes at a time: some milliseconds of work, so that the last
   rows of a batch are shared. */
enum { ROWS_PER_TURN = 8 };

enum { WHY_SIZE = 600 };

/* A step is in one state, changed under the lock, in this order. */
enum turn_state { FREE, FETCHING, RUNNING, STARTING, DONE, HELD };

/* A step and its place in the ring. All but `step` is guarded by the lock. */
struct turn {
	struct step *step;
	struct turn *prev, *next;
	enum turn_state state;
	uint64_t sequence; /* of the batches, in the order of delivery */
	uint32_t next_row;
	uint32_t rows_left; /* not finished yet */
	uint64_t busy_ns;   /* of all threads that ran rows of it */
	int error;
};

struct ring {
	struct ring_options options;
	pthread_mutex_t lock; /* guards all down to worker_error */
	pthread_cond_t room;  /* for the fetching thread */
	pthread_cond_t work;  /* for the workers */
	pthread_cond_t ready; /* for the user */
	bool stopping;
	struct turn *turns; /* all but FREE, in order of sequence */
	struct turn *free_turns;
	uint32_t num_free;
	uint32_t in_flight; /* FETCHING to DONE */
	uint64_t epochs_end;
	struct cursor produced;
	uint64_t produced_sequence;
	struct cursor given;	 /* written by the user's thread alone */
	uint64_t given_sequence; /* what has a smaller one is stale */
	bool epoch_over;	 /* the user was told so */
	struct turn *constant;	 /* the one batch, once it is there */
	struct balance balance;
	uint64_t last_given_ns; /* 0: not in this epoch */
	int worker_error;	/* why a thread cannot go on */

	pthread_t fetcher;
	bool has_fetcher;
	pthread_t *workers;
	uint32_t num_workers;
	struct stage_counters counters[STAGES];
	atomic_uint_fast64_t failed_rows;
};

/* Names what the thread does now to NVIDIA's profilers. */
static void push_range(struct ring *ring, const char *name)
{
	struct device *d = ring->options.plan.device;

	cuda_range_push(d ? device_cuda(d) : NULL, name);
}

static void pop_range(struct ring *ring)
{
	struct device *d = ring->options.plan.device;

	cuda_range_pop(d ? device_cuda(d) : NULL);
}

/* Waits, and counts the wait. */
static void wait_counted(struct ring *ring, pthread_cond_t *cond,
			 atomic_uint_fast64_t *counter)
{
	uint64_t before = stage_now_ns();

	pthread_cond_wait(cond, &ring->lock);
	atomic_fetch_add(counter, stage_now_ns() - before);
}

/* --- the ring; all with the lock held --- */

static bool is_stale(const struct ring *ring, const struct turn *t)
{
	return t->state != HELD && t->sequence < ring->given_sequence;
}

static void turn_close(struct ring *ring, struct turn *t)
{
	feed_give_back(ring->options.feed, &t->step->input);
	step_close(t->step);
	free(t);
}

/* From the ring to the free ones, or to the system if there are enough. What is
   a GPU's stays: to free it is to wait for the device. */
static void recycle(struct ring *ring, struct turn *t)
{
	DL_DELETE(ring->turns, t);
	if (t->step->parcel)
		parcel_end(t->step->parcel);
	/* Unless it ended early, what was lent went back already. */
	feed_give_back(ring->options.feed, &t->step->input);
	if (t->state != HELD)
		ring->in_flight--;
	t->state = FREE;
	if (ring->num_free > ring->options.prefetch && !t->step->parcel) {
		turn_close(ring, t);
	} else {
		LL_PREPEND(ring->free_turns, t);
		ring->num_free++;
	}
	pthread_cond_signal(&ring->room);
}

static void finish(struct ring *ring, struct turn *t, int error)
{
	if (!t->error)
		t->error = error;
	t->state = DONE;
	if (is_stale(ring, t))
		recycle(ring, t);
	else
		pthread_cond_broadcast(&ring->ready);
}

static bool may_produce(const struct ring *ring)
{
	if (ring->in_flight >= ring->options.prefetch || ring->worker_error ||
	    ring->produced.epoch >= ring->epochs_end)
		return false;
	if (ring->options.constant &&
	    ring->produced_sequence > ring->given_sequence)
		return false;
	return !ring->constant && spec_batches(&ring->options.feed->spec) &&
	       spec_steps(&ring->options.feed->spec, 0, ring->produced.world);
}

static int take_free(struct ring *ring, struct turn **out)
{
	struct turn *t = ring->free_turns;
	int r;

	if (t) {
		LL_DELETE(ring->free_turns, t);
		ring->num_free--;
		*out = t;
		return 0;
	}
	t = calloc(1, sizeof(*t));
	r = t ? step_open(&ring->options.plan, &t->step) : -ENOMEM;
	if (r)
		free(t);
	else
		*out = t;
	return r;
}

/* --- fetching --- */

struct order_ticket {
	uint64_t epoch;
	uint64_t number; /* in the global sequence */
	bool padding;
};

/* In words, of the device if that is what failed. */
static void explain(const struct ring *ring, int error, bool by_device,
		    char *out, size_t size)
{
	struct device *d = ring->options.plan.device;

	*out = '\0';
	if (d && (by_device || cuda_is_lost(device_cuda(d))))
		cuda_failure(device_cuda(d), out, size);
	if (!*out)
		snprintf(out, size, "%s", strerror(-error));
}

/* No more batches: the user is told why. */
static void give_up(struct ring *ring, int error)
{
	ring->worker_error = error;
	pthread_cond_broadcast(&ring->ready);
}

/* The next step of this rank, and the turn that is to become it; NULL at the
   end of an epoch, or when none can be had. */
static struct turn *begin_turn(struct ring *ring, struct order_ticket *o)
{
	struct turn *t;
	uint64_t n = spec_batches(&ring->options.feed->spec);
	int r;

	if (cursor_at_end(&ring->produced)) {
		cursor_seek(&ring->produced, ring->produced.epoch + 1, 0);
		return NULL;
	}
	r = take_free(ring, &t);
	if (r) {
		give_up(ring, r);
		return NULL;
	}
	o->epoch = ring->produced.epoch;
	o->number = cursor_number(&ring->produced);
	o->padding = o->number >= n;
	ring->produced.step++;
	t->sequence = ring->produced_sequence++;
	t->state = FETCHING;
	t->error = 0;
	t->busy_ns = 0;
	t->step->side = balance_choose(&ring->balance);
	DL_APPEND(ring->turns, t);
	ring->in_flight++;
	return t;
}

/* Without the lock. */
static int fetch(struct ring *ring, struct step *s,
		 const struct order_ticket *o)
{
	struct stage_counters *c = &ring->counters[STAGE_READ];
	uint64_t before = stage_now_ns();
	int r = feed_fetch(ring->options.feed, o->epoch,
			   o->number % spec_batches(&ring->options.feed->spec),
			   &s->input, &s->view);

	if (!r)
		r = step_prepare(s, &ring->options.plan, o->number, o->padding);
	if (!r && ring->options.plan.until == BETON_STAGE_READ) {
		step_sum(s);
		feed_give_back(ring->options.feed, &s->input);
	}
	atomic_fetch_add(&c->busy_ns, stage_now_ns() - before);
	atomic_fetch_add(&c->items, 1);
	if (!r)
		atomic_fetch_add(&c->bytes, s->input.size);
	return r;
}

/* A batch that could not be had is a message too. */
static void note_failure(const struct ring *ring, struct turn *t,
			 uint64_t epoch, uint64_t number, int error,
			 bool by_device)
{
	char why[WHY_SIZE];

	explain(ring, error, by_device, why, sizeof(why));
	snprintf(t->step->message, sizeof(t->step->message),
		 "%.300s: epoch %llu batch %llu: %s", ring->options.feed->path,
		 (unsigned long long)epoch, (unsigned long long)number, why);
}

static void fetch_turn(struct ring *ring, struct turn *t,
		       const struct order_ticket *o)
{
	int r;

	pthread_mutex_unlock(&ring->lock);
	push_range(ring, "beton read");
	r = fetch(ring, t->step, o);
	pop_range(ring);
	if (r)
		note_failure(ring, t, o->epoch, o->number, r, false);
	pthread_mutex_lock(&ring->lock);
	if (r || ring->options.plan.until == BETON_STAGE_READ ||
	    is_stale(ring, t)) {
		finish(ring, t, r);
		return;
	}
	t->state = RUNNING;
	t->next_row = 0;
	t->rows_left = t->step->batch.rows;
	pthread_cond_broadcast(&ring->work);
}

static void *fetch_all(void *arg)
{
	struct ring *ring = arg;
	struct order_ticket o;
	struct turn *t;

	pthread_mutex_lock(&ring->lock);
	while (!ring->stopping) {
		if (!may_produce(ring)) {
			wait_counted(ring, &ring->room,
				     &ring->counters[STAGE_READ].room_wait_ns);
			continue;
		}
		t = begin_turn(ring, &o);
		if (t)
			fetch_turn(ring, t, &o);
	}
	pthread_mutex_unlock(&ring->lock);
	return NULL;
}

/* --- running rows --- */

static struct turn *turn_with_rows(struct ring *ring)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->state == RUNNING && t->next_row < t->step->batch.rows)
			return t;
	}
	return NULL;
}

/* Of all failures of a batch the first row's is told, whoever ran it. */
static void note_row(struct ring *ring, struct turn *t,
		     const struct step_failure *f)
{
	struct step *s = t->step;

	atomic_fetch_add(&ring->failed_rows, 1);
	log_error(ring->options.log, "%s: %s", ring->options.feed->path,
		  f->why);
	scoped_lock(&ring->lock);
	if (f->row >= s->failed_row)
		return;
	s->failed_row = f->row;
	snprintf(s->message, sizeof(s->message), "%.200s: %s",
		 ring->options.feed->path, f->why);
	if (ring->options.plan.on_error == BETON_ON_ERROR_RAISE)
		t->error = -EIO;
}

/* Without the lock; how long it took. */
static uint64_t run_rows(struct ring *ring, struct turn *t,
			 struct pipeline_worker *w, uint32_t first, uint32_t n)
{
	uint64_t before = stage_now_ns(), decode_ns = 0, busy;
	struct step_failure failure;

	push_range(ring, "beton rows");
	for (uint32_t row = first; row < first + n; row++) {
		if (step_run_row(t->step, &ring->options.plan, w, row, &failure,
				 &decode_ns))
			note_row(ring, t, &failure);
	}
	if (step_rows_done(t->step, n))
		feed_give_back(ring->options.feed, &t->step->input);
	busy = stage_now_ns() - before;
	atomic_fetch_add(&ring->counters[STAGE_DECODE].items, n);
	atomic_fetch_add(&ring->counters[STAGE_DECODE].busy_ns, decode_ns);
	atomic_fetch_add(&ring->counters[STAGE_TRANSFORM].items, n);
	atomic_fetch_add(&ring->counters[STAGE_TRANSFORM].busy_ns,
			 busy - min_u64(busy, decode_ns));
	pop_range(ring);
	return busy;
}

/* Sends a turn whose rows are made to the GPU, if there is one. Lock held
   before and after. */
static int start(struct ring *ring, struct turn *t)
{
	struct stage_counters *c = &ring->counters[STAGE_UPLOAD];
	uint64_t before;
	int r;

	if (!t->step->parcel || t->error || is_stale(ring, t))
		return 0;
	t->state = STARTING;
	pthread_mutex_unlock(&ring->lock);
	before = stage_now_ns();
	r = step_start(t->step);
	atomic_fetch_add(&c->busy_ns, stage_now_ns() - before);
	atomic_fetch_add(&c->items, 1);
	if (r)
		note_failure(ring, t, t->step->batch.epoch,
			     t->step->batch.number, r, true);
	pthread_mutex_lock(&ring->lock);
	return r;
}

/* Takes some rows of a turn and runs them; lock held before and after. */
static void run_turn(struct ring *ring, struct turn *t,
		     struct pipeline_worker *w)
{
	uint32_t first = t->next_row;
	uint32_t n =
		(uint32_t)min_u64(ROWS_PER_TURN, t->step->batch.rows - first);
	uint64_t busy;

	t->next_row += n;
	pthread_mutex_unlock(&ring->lock);
	busy = run_rows(ring, t, w, first, n);
	pthread_mutex_lock(&ring->lock);
	t->busy_ns += busy;
	t->rows_left -= n;
	if (!t->rows_left)
		finish(ring, t, start(ring, t));
}

static void *work(void *arg)
{
	struct ring *ring = arg;
	struct pipeline_worker *w = NULL;
	struct turn *t;
	const struct step_plan *plan = &ring->options.plan;
	/* Who can finish rows can do less, too. */
	int r = pipeline_worker_open(
		phases_row(plan->whole ? plan->whole : plan->phases, 0), &w);

	pthread_mutex_lock(&ring->lock);
	if (r)
		give_up(ring, r);
	while (!ring->stopping && !r) {
		t = turn_with_rows(ring);
		if (t)
			run_turn(ring, t, w);
		else
			wait_counted(
				ring, &ring->work,
				&ring->counters[STAGE_DECODE].input_wait_ns);
	}
	pthread_mutex_unlock(&ring->lock);
	pipeline_worker_close(w);
	return NULL;
}

/* --- what the user calls --- */

/* The next turn if it is ready. */
static struct turn *find_ready(struct ring *ring)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->state == DONE && t->sequence == ring->given_sequence)
			return t;
	}
	return NULL;
}

static struct turn *wait_for(struct ring *ring)
{
	struct turn *t;

	for (;;) {
		t = find_ready(ring);
		if (t || ring->worker_error)
			return t;
		wait_counted(ring, &ring->ready,
			     &ring->counters[STAGE_NEXT].input_wait_ns);
	}
}

static bool turn_epoch(struct ring *ring)
{
	if (!cursor_at_end(&ring->given))
		return false;
	if (!ring->epoch_over || ring->given.epoch + 1 >= ring->epochs_end) {
		ring->epoch_over = true;
		return true;
	}
	cursor_seek(&ring->given, ring->given.epoch + 1, 0);
	ring->epoch_over = false;
	return cursor_at_end(&ring->given);
}

static uint32_t count_ready(const struct ring *ring)
{
	const struct turn *t;
	uint32_t n = 0;

	DL_FOREACH(ring->turns, t)
	{
		n += t->state == DONE;
	}
	return n;
}

/* What a turn that is given out says about who has time; so many were ready
   when the user came. */
static void weigh(struct ring *ring, const struct turn *t, uint32_t ready)
{
	uint64_t now = stage_now_ns(), last = ring->last_given_ns;
	struct parcel *p = t->step->parcel;

	ring->last_given_ns = now;
	if (!p || !ring->options.plan.whole)
		return;
	balance_add(&ring->balance,
		    &(struct balance_batch){
			    .side = t->step->side,
			    .rows = t->step->batch.rows,
			    .busy_ns = t->busy_ns,
			    .bytes = parcel_size(p),
			    .period_ns = last ? now - last : 0,
			    .starved = !ready,
			    .full = ready >= ring->options.prefetch,
			    .blocked = parcel_has_waited(p),
		    });
}

/* Hands a turn out, or reports its error and lets it go. */
static int give(struct ring *ring, struct turn *t,
		const struct beton_batch **out, char *message, size_t size)
{
	ring->given_sequence++;
	ring->given.step++;
	if (t->error) {
		int r = t->error;

		snprintf(message, size, "%s", t->step->message);
		recycle(ring, t);
		return r;
	}
	t->state = HELD;
	ring->in_flight--;
	pthread_cond_signal(&ring->room);
	if (ring->options.constant)
		ring->constant = t;
	*out = &t->step->batch;
	return 0;
}

int ring_next(struct ring *ring, const struct beton_batch **out, char *message,
	      size_t message_size)
{
	char why[WHY_SIZE];
	struct turn *t;
	uint32_t ready;

	scoped_lock(&ring->lock);
	if (turn_epoch(ring)) {
		ring->last_given_ns = 0;
		snprintf(message, message_size, "the epoch is over");
		return -ENODATA;
	}
	atomic_fetch_add(&ring->counters[STAGE_NEXT].items, 1);
	if (ring->constant) {
		ring->given.step++;
		*out = &ring->constant->step->batch;
		return 0;
	}
	ready = find_ready(ring) ? count_ready(ring) : 0;
	push_range(ring, "beton next");
	t = wait_for(ring);
	pop_range(ring);
	if (t && !t->error)
		weigh(ring, t, ready);
	if (t)
		return give(ring, t, out, message, message_size);
	explain(ring, ring->worker_error, false, why, sizeof(why));
	snprintf(message, message_size, "the loader cannot go on: %s", why);
	return ring->worker_error;
}

/* With the lock held. NULL: the user does not hold it. */
static struct turn *held(struct ring *ring, const struct beton_batch *batch)
{
	struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (&t->step->batch == batch && t->state == HELD)
			return t;
	}
	return NULL;
}

void ring_release(struct ring *ring, const struct beton_batch *batch)
{
	struct turn *t;

	scoped_lock(&ring->lock);
	t = held(ring, batch);
	if (t && t != ring->constant)
		recycle(ring, t);
}

int ring_parcel(struct ring *ring, const struct beton_batch *batch,
		struct parcel **out)
{
	struct turn *t;

	scoped_lock(&ring->lock);
	t = held(ring, batch);
	if (!t)
		return -EINVAL;
	*out = t->step->batch.rows ? t->step->parcel : NULL;
	return 0;
}

/* Forgets what is under way and goes on elsewhere. */
void ring_seek(struct ring *ring, uint64_t epoch, uint64_t batches)
{
	struct turn *t, *next;
	uint64_t before;

	scoped_lock(&ring->lock);
	before = ring->given.epoch;
	cursor_seek(&ring->given, epoch, batches);
	if (ring->epochs_end != UINT64_MAX)
		ring->epochs_end += ring->given.epoch - before;
	ring->produced = ring->given;
	ring->given_sequence = ring->produced_sequence;
	ring->epoch_over = false;
	ring->last_given_ns = 0;
	DL_FOREACH_SAFE(ring->turns, t, next)
	{
		if (!is_stale(ring, t))
			continue;
		if (t->state == RUNNING) {
			t->rows_left -= t->step->batch.rows - t->next_row;
			t->next_row = t->step->batch.rows;
		}
		if (t->state == DONE || (t->state == RUNNING && !t->rows_left))
			recycle(ring, t);
	}
	pthread_cond_signal(&ring->room);
}

const struct cursor *ring_cursor(const struct ring *ring)
{
	return &ring->given;
}

uint64_t ring_epoch(struct ring *ring)
{
	const struct cursor *c = &ring->given;

	scoped_lock(&ring->lock);
	if (ring->constant)
		return ring->constant->step->batch.epoch;
	if (cursor_at_end(c) && c->epoch + 1 < ring->epochs_end)
		return c->epoch + 1;
	return c->epoch;
}

enum balance_side ring_side(struct ring *ring)
{
	scoped_lock(&ring->lock);
	return ring->balance.side;
}

size_t ring_stats(const struct ring *ring, struct beton_stage_stats *out,
		  size_t max)
{
	return stage_stats(ring->counters, out, max);
}

uint64_t ring_failed_rows(const struct ring *ring)
{
	return atomic_load(&ring->failed_rows);
}

/* --- opening and closing --- */

static int start_threads(struct ring *ring)
{
	uint32_t workers = ring->options.workers;
	int r;

	ring->workers = calloc(workers, sizeof(*ring->workers));
	if (!ring->workers)
		return -ENOMEM;
	r = thread_start(&ring->fetcher, fetch_all, ring);
	ring->has_fetcher = !r;
	for (; ring->num_workers < workers && !r; ring->num_workers += !r)
		r = thread_start(&ring->workers[ring->num_workers], work, ring);
	return r;
}

int ring_open(const struct ring_options *options, struct ring **out)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->options = *options;
	ring->epochs_end = options->epochs_end;
	ring->given = ring->produced = options->start;
	balance_init(&ring->balance, options->balance, options->workers);
	pthread_mutex_init(&ring->lock, NULL);
	pthread_cond_init(&ring->room, NULL);
	pthread_cond_init(&ring->work, NULL);
	pthread_cond_init(&ring->ready, NULL);
	r = start_threads(ring);
	if (r)
		ring_close(ring);
	else
		*out = ring;
	return r;
}

static void stop_threads(struct ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	ring->stopping = true;
	pthread_cond_broadcast(&ring->room);
	pthread_cond_broadcast(&ring->work);
	pthread_mutex_unlock(&ring->lock);
	if (ring->has_fetcher)
		pthread_join(ring->fetcher, NULL);
	for (uint32_t i = 0; i < ring->num_workers; i++)
		pthread_join(ring->workers[i], NULL);
}

void ring_close(struct ring *ring)
{
	struct turn *t, *next;

	if (!ring)
		return;
	stop_threads(ring);
	DL_FOREACH_SAFE(ring->turns, t, next)
	{
		turn_close(ring, t);
	}
	LL_FOREACH_SAFE(ring->free_turns, t, next)
	{
		turn_close(ring, t);
	}
	pthread_cond_destroy(&ring->ready);
	pthread_cond_destroy(&ring->work);
	pthread_cond_destroy(&ring->room);
	pthread_mutex_destroy(&ring->lock);
	free(ring->workers);
	free(ring);
}

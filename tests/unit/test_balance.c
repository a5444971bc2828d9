/* SPDX-License-Identifier: Apache-2.0 */
/* Who finishes rows: what each side costs and who waits are given, the choice
   is looked at. */
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/run/offload.h"
#include "tests/unit/t.h"

enum { ROWS = 64, WORKERS = 4, WINDOW = BALANCE_WINDOW };

/* A made-up machine: per batch, in ns. */
struct machine {
	uint64_t busy[2];     /* of the processors, by side */
	uint64_t bytes[2];    /* shipped, by side */
	uint64_t consumer[2]; /* of the trainer and its GPU, by side */
	bool gpu_is_late;     /* the trainer never waits, its GPU is behind */
};

static uint64_t period_of(const struct machine *m, enum balance_side side)
{
	return max_u64(m->busy[side] / WORKERS, m->consumer[side]);
}

static struct balance_batch batch_of(const struct machine *m,
				     enum balance_side side)
{
	bool waits = m->busy[side] / WORKERS > m->consumer[side];

	return (struct balance_batch){
		.side = side,
		.rows = ROWS,
		.busy_ns = m->busy[side],
		.bytes = m->bytes[side],
		.period_ns = period_of(m, side),
		.starved = waits || m->gpu_is_late,
		.full = !waits && !m->gpu_is_late,
		.blocked = !waits && m->gpu_is_late,
	};
}

/* So many batches; those of the processor's side among them. */
static uint32_t run(struct balance *b, const struct machine *m, uint32_t n)
{
	uint32_t processor = 0;

	while (n--) {
		enum balance_side side = balance_choose(b);
		struct balance_batch batch = batch_of(m, side);

		balance_add(b, &batch);
		processor += side == BALANCE_PROCESSOR;
	}
	return processor;
}

static const struct machine slow_loader = {
	.busy = { 800, 1000 },
	.bytes = { 100, 400 },
	.consumer = { 50, 50 },
};

static const struct machine slow_trainer = {
	.busy = { 800, 1000 },
	.bytes = { 100, 400 },
	.consumer = { 600, 500 },
};

static void words_are_modes(void)
{
	enum balance_mode mode = BALANCE_TURNS;

	CHECK(balance_parse("auto", &mode) && mode == BALANCE_BY_COST);
	CHECK(balance_parse("device", &mode) && mode == BALANCE_ALL_DEVICE);
	CHECK(balance_parse("processor", &mode) &&
	      mode == BALANCE_ALL_PROCESSOR);
	CHECK(balance_parse("turns", &mode) && mode == BALANCE_TURNS);
	CHECK(!balance_parse("", &mode) && !balance_parse("Auto", &mode));
	CHECK(mode == BALANCE_TURNS);
	CHECK(!strcmp(balance_name(BALANCE_DEVICE), "device"));
	CHECK(!strcmp(balance_name(BALANCE_PROCESSOR), "processor"));
}

static void a_mode_is_not_argued_with(void)
{
	struct balance b;

	balance_init(&b, BALANCE_ALL_DEVICE, WORKERS);
	CHECK(!run(&b, &slow_trainer, 100 * WINDOW));
	balance_init(&b, BALANCE_ALL_PROCESSOR, WORKERS);
	CHECK(run(&b, &slow_loader, 100 * WINDOW) == 100 * WINDOW);
	balance_init(&b, BALANCE_TURNS, WORKERS);
	for (int i = 0; i < 10; i++)
		CHECK(balance_choose(&b) ==
		      (i % 2 ? BALANCE_PROCESSOR : BALANCE_DEVICE));
}

/* One window of the other side, to know its costs, and never again. */
static void a_slow_loader_leaves_it_to_the_gpu(void)
{
	struct balance b;

	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(!run(&b, &slow_loader, WINDOW));
	CHECK(run(&b, &slow_loader, 1000 * WINDOW) == WINDOW);
	CHECK(b.side == BALANCE_DEVICE);
}

/* It never is, but nothing here may depend on that. */
static void a_slow_loader_takes_the_lighter_side(void)
{
	struct machine m = slow_loader;
	struct balance b;

	m.busy[BALANCE_PROCESSOR] = 500;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(run(&b, &m, 100 * WINDOW) == 99 * WINDOW);
}

static void a_slow_trainer_gets_finished_rows(void)
{
	struct balance b;

	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(run(&b, &slow_trainer, 100 * WINDOW) == 99 * WINDOW);
}

static void changes(struct balance *b, const struct machine *m, uint32_t n,
		    uint32_t *out)
{
	enum balance_side before = b->side;

	for (*out = 0; n--; before = b->side) {
		run(b, m, 1);
		*out += b->side != before;
	}
}

/* The processors keep up on one side only: tries become rare. */
static void tries_that_fail_become_rare(void)
{
	struct machine m = slow_trainer;
	struct balance b;
	uint32_t n;

	m.busy[BALANCE_PROCESSOR] = 4000;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	changes(&b, &m, 1000 * WINDOW, &n);
	CHECK(n >= 2 && n <= 24 && b.side == BALANCE_DEVICE);
	changes(&b, &m, 1000 * WINDOW, &n);
	CHECK(n <= 4);
}

/* No try where the processors have hardly time for what they do now. */
static void busy_processors_get_no_more(void)
{
	struct machine m = slow_trainer;
	struct balance b;

	m.busy[BALANCE_DEVICE] = 2000;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(!run(&b, &m, 100 * WINDOW));
}

/* The trainer's own threads may need the processors. */
static void a_try_that_slows_the_trainer_ends(void)
{
	struct machine m = slow_trainer;
	struct balance b;

	m.consumer[BALANCE_PROCESSOR] = 700;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(run(&b, &m, 1000 * WINDOW) <= 12 * WINDOW);
	CHECK(b.side == BALANCE_DEVICE);
}

/* A GPU that is behind looks like a slow loader to who waits for it. */
static void a_late_gpu_is_relieved(void)
{
	struct machine m = slow_trainer;
	struct balance b;

	m.gpu_is_late = true;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(run(&b, &m, 100 * WINDOW) == 99 * WINDOW);
	/* If it is copies that it is late with, more of them do not help. */
	m.consumer[BALANCE_PROCESSOR] = m.consumer[BALANCE_DEVICE];
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	CHECK(run(&b, &m, 1000 * WINDOW) <= 12 * WINDOW);
}

/* Another trainer, another choice; and one pause is no other trainer. */
static void choices_follow_who_waits(void)
{
	struct balance_batch pause = batch_of(&slow_trainer, BALANCE_PROCESSOR);
	struct balance b;

	balance_init(&b, BALANCE_BY_COST, WORKERS);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == BALANCE_PROCESSOR);
	pause.period_ns = 1000000000;
	balance_add(&b, &pause);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == BALANCE_PROCESSOR);
	run(&b, &slow_loader, 2 * WINDOW);
	CHECK(b.side == BALANCE_DEVICE);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == BALANCE_PROCESSOR);
}

/* What was begun before a change does not count for the other side. */
static void batches_of_the_other_side_are_left_out(void)
{
	struct balance_batch old = batch_of(&slow_loader, BALANCE_DEVICE);
	struct balance b;

	balance_init(&b, BALANCE_BY_COST, WORKERS);
	run(&b, &slow_trainer, WINDOW);
	CHECK(b.side == BALANCE_PROCESSOR);
	for (uint32_t i = 0; i < 10 * WINDOW; i++)
		balance_add(&b, &old);
	CHECK(b.side == BALANCE_PROCESSOR);
}

/* Nobody waits for the other: nothing to gain. */
static void what_is_even_stays(void)
{
	struct balance_batch batch = batch_of(&slow_trainer, BALANCE_DEVICE);
	struct balance b;

	batch.full = batch.starved = false;
	balance_init(&b, BALANCE_BY_COST, WORKERS);
	for (uint32_t i = 0; i < 100 * WINDOW; i++)
		balance_add(&b, &batch);
	CHECK(b.side == BALANCE_DEVICE);
}

/* Without periods, rows or times. */
static void facts_may_be_missing(void)
{
	struct balance_batch batch = { .full = true };
	struct balance b;

	balance_init(&b, BALANCE_BY_COST, WORKERS);
	for (uint32_t i = 0; i < 100 * WINDOW; i++) {
		batch.side = balance_choose(&b);
		balance_add(&b, &batch);
	}
	CHECK(b.side == BALANCE_DEVICE);
	batch.starved = true;
	for (uint32_t i = 0; i < 100 * WINDOW; i++) {
		batch.side = balance_choose(&b);
		balance_add(&b, &batch);
	}
	CHECK(b.side == BALANCE_DEVICE);
}

int main(void)
{
	words_are_modes();
	a_mode_is_not_argued_with();
	a_slow_loader_leaves_it_to_the_gpu();
	a_slow_loader_takes_the_lighter_side();
	a_slow_trainer_gets_finished_rows();
	tries_that_fail_become_rare();
	busy_processors_get_no_more();
	a_try_that_slows_the_trainer_ends();
	a_late_gpu_is_relieved();
	choices_follow_who_waits();
	batches_of_the_other_side_are_left_out();
	what_is_even_stays();
	facts_may_be_missing();
	return 0;
}

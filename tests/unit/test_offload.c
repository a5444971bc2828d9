/* SPDX-License-Identifier: Apache-2.0 */
/* The choice whether the CPU or the GPU runs the pointwise stage, from given
   costs and waits of each side. */
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/loop/offload.h"
#include "tests/unit/t.h"

enum { ROWS = 64, WORKERS = 4, WINDOW = OFFLOAD_WINDOW };

/* A simulated machine: per batch, in ns. */
struct machine {
	uint64_t busy[2];     /* of the CPUs, by side */
	uint64_t bytes[2];    /* uploaded, by side */
	uint64_t consumer[2]; /* of the trainer and its GPU, by side */
	bool gpu_is_late;     /* the trainer never waits, its GPU is behind */
};

static uint64_t period_of(const struct machine *m, enum offload_side side)
{
	return max_u64(m->busy[side] / WORKERS, m->consumer[side]);
}

static struct offload_batch batch_of(const struct machine *m,
				     enum offload_side side)
{
	bool waits = m->busy[side] / WORKERS > m->consumer[side];

	return (struct offload_batch){
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

/* Runs n batches. Returns the number of those on the CPU's side. */
static uint32_t run(struct offload *b, const struct machine *m, uint32_t n)
{
	uint32_t processor = 0;

	while (n--) {
		enum offload_side side = offload_choose(b);
		struct offload_batch batch = batch_of(m, side);

		offload_add(b, &batch);
		processor += side == OFFLOAD_CPU;
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
	enum offload_mode mode = OFFLOAD_TURNS;

	CHECK(offload_parse("auto", &mode) && mode == OFFLOAD_BY_COST);
	CHECK(offload_parse("gpu", &mode) && mode == OFFLOAD_ALL_GPU);
	CHECK(offload_parse("cpu", &mode) && mode == OFFLOAD_ALL_CPU);
	CHECK(offload_parse("turns", &mode) && mode == OFFLOAD_TURNS);
	CHECK(!offload_parse("", &mode) && !offload_parse("Auto", &mode));
	CHECK(!offload_parse("device", &mode));
	CHECK(mode == OFFLOAD_TURNS);
	CHECK(!strcmp(offload_name(OFFLOAD_GPU), "gpu"));
	CHECK(!strcmp(offload_name(OFFLOAD_CPU), "cpu"));
}

static void a_mode_is_not_argued_with(void)
{
	struct offload b;

	offload_init(&b, OFFLOAD_ALL_GPU, WORKERS);
	CHECK(!run(&b, &slow_trainer, 100 * WINDOW));
	offload_init(&b, OFFLOAD_ALL_CPU, WORKERS);
	CHECK(run(&b, &slow_loader, 100 * WINDOW) == 100 * WINDOW);
	offload_init(&b, OFFLOAD_TURNS, WORKERS);
	for (int i = 0; i < 10; i++)
		CHECK(offload_choose(&b) ==
		      (i % 2 ? OFFLOAD_CPU : OFFLOAD_GPU));
}

/* One window of the other side, to know its costs, and never again. */
static void a_slow_loader_leaves_it_to_the_gpu(void)
{
	struct offload b;

	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(!run(&b, &slow_loader, WINDOW));
	CHECK(run(&b, &slow_loader, 1000 * WINDOW) == WINDOW);
	CHECK(b.side == OFFLOAD_GPU);
}

/* It never is, but nothing here may depend on that. */
static void a_slow_loader_takes_the_lighter_side(void)
{
	struct machine m = slow_loader;
	struct offload b;

	m.busy[OFFLOAD_CPU] = 500;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(run(&b, &m, 100 * WINDOW) == 99 * WINDOW);
}

static void a_slow_trainer_gets_finished_rows(void)
{
	struct offload b;

	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(run(&b, &slow_trainer, 100 * WINDOW) == 99 * WINDOW);
}

static void changes(struct offload *b, const struct machine *m, uint32_t n,
		    uint32_t *out)
{
	enum offload_side before = b->side;

	for (*out = 0; n--; before = b->side) {
		run(b, m, 1);
		*out += b->side != before;
	}
}

/* The CPUs keep up on one side only: tries become rare. */
static void tries_that_fail_become_rare(void)
{
	struct machine m = slow_trainer;
	struct offload b;
	uint32_t n;

	m.busy[OFFLOAD_CPU] = 4000;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	changes(&b, &m, 1000 * WINDOW, &n);
	CHECK(n >= 2 && n <= 24 && b.side == OFFLOAD_GPU);
	changes(&b, &m, 1000 * WINDOW, &n);
	CHECK(n <= 4);
}

/* There is no try if the CPUs have hardly any time to spare. */
static void busy_cpus_get_no_more(void)
{
	struct machine m = slow_trainer;
	struct offload b;

	m.busy[OFFLOAD_GPU] = 2000;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(!run(&b, &m, 100 * WINDOW));
}

/* The trainer's own threads may need the CPUs. */
static void a_try_that_slows_the_trainer_ends(void)
{
	struct machine m = slow_trainer;
	struct offload b;

	m.consumer[OFFLOAD_CPU] = 700;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(run(&b, &m, 1000 * WINDOW) <= 12 * WINDOW);
	CHECK(b.side == OFFLOAD_GPU);
}

/* A GPU that is behind looks like a slow loader to who waits for it. */
static void a_late_gpu_is_relieved(void)
{
	struct machine m = slow_trainer;
	struct offload b;

	m.gpu_is_late = true;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(run(&b, &m, 100 * WINDOW) == 99 * WINDOW);
	/* If it is copies that it is late with, more of them do not help. */
	m.consumer[OFFLOAD_CPU] = m.consumer[OFFLOAD_GPU];
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	CHECK(run(&b, &m, 1000 * WINDOW) <= 12 * WINDOW);
}

/* Another trainer, another choice; and one pause is no other trainer. */
static void choices_follow_waits(void)
{
	struct offload_batch pause = batch_of(&slow_trainer, OFFLOAD_CPU);
	struct offload b;

	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == OFFLOAD_CPU);
	pause.period_ns = 1000000000;
	offload_add(&b, &pause);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == OFFLOAD_CPU);
	run(&b, &slow_loader, 2 * WINDOW);
	CHECK(b.side == OFFLOAD_GPU);
	run(&b, &slow_trainer, 10 * WINDOW);
	CHECK(b.side == OFFLOAD_CPU);
}

/* Batches that began before a change do not count for the other side. */
static void batches_of_the_other_side_are_left_out(void)
{
	struct offload_batch old = batch_of(&slow_loader, OFFLOAD_GPU);
	struct offload b;

	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	run(&b, &slow_trainer, WINDOW);
	CHECK(b.side == OFFLOAD_CPU);
	for (uint32_t i = 0; i < 10 * WINDOW; i++)
		offload_add(&b, &old);
	CHECK(b.side == OFFLOAD_CPU);
}

/* Neither side waits for the other: there is nothing to gain. */
static void a_balanced_split_stays(void)
{
	struct offload_batch batch = batch_of(&slow_trainer, OFFLOAD_GPU);
	struct offload b;

	batch.full = batch.starved = false;
	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	for (uint32_t i = 0; i < 100 * WINDOW; i++)
		offload_add(&b, &batch);
	CHECK(b.side == OFFLOAD_GPU);
}

/* Without periods, rows or times. */
static void facts_may_be_missing(void)
{
	struct offload_batch batch = { .full = true };
	struct offload b;

	offload_init(&b, OFFLOAD_BY_COST, WORKERS);
	for (uint32_t i = 0; i < 100 * WINDOW; i++) {
		batch.side = offload_choose(&b);
		offload_add(&b, &batch);
	}
	CHECK(b.side == OFFLOAD_GPU);
	batch.starved = true;
	for (uint32_t i = 0; i < 100 * WINDOW; i++) {
		batch.side = offload_choose(&b);
		offload_add(&b, &batch);
	}
	CHECK(b.side == OFFLOAD_GPU);
}

int main(void)
{
	words_are_modes();
	a_mode_is_not_argued_with();
	a_slow_loader_leaves_it_to_the_gpu();
	a_slow_loader_takes_the_lighter_side();
	a_slow_trainer_gets_finished_rows();
	tries_that_fail_become_rare();
	busy_cpus_get_no_more();
	a_try_that_slows_the_trainer_ends();
	a_late_gpu_is_relieved();
	choices_follow_waits();
	batches_of_the_other_side_are_left_out();
	a_balanced_split_stays();
	facts_may_be_missing();
	return 0;
}

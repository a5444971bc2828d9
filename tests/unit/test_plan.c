/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/plan.h"
#include "tests/unit/made.h"

enum { SAMPLES = 1000, BATCH = 10, BATCHES = SAMPLES / BATCH };

static struct dataset *ds;
static const struct spec spec = {
	.order = BETON_ORDER_SEQUENTIAL,
	.batch = BATCH,
	.drop_last = 1,
	.end = SAMPLES,
};

static void note(struct plan *plan, uint64_t epoch, uint64_t number)
{
	struct batch_key key = { ds, &spec, epoch, number };

	plan_note(plan, &key, NULL, NULL, 0);
}

/* Reports what happened to the memory of a batch. */
static void tell(struct plan *plan, uint64_t number,
		 void (*told)(struct plan *, const struct batch *))
{
	struct batch_key key = { ds, &spec, 0, number };
	struct batch *batch;

	CHECK(batch_open(&key, NULL, &batch) == 0);
	told(plan, batch);
	batch_put(&batch);
}

/* Whether a reader still needs the batch in this epoch: its first use is nearer
   than that of the first sample, which all readers have passed. */
static bool is_needed(struct plan *plan, uint64_t number)
{
	const struct cache_file file = { .ds = ds, .per = 1 };

	return plan_next_use(plan, &file, number * BATCH) <
	       plan_next_use(plan, &file, 0);
}

/* Two jobs with the same sampling spec: a batch that one has collated for
   itself is not shared with the other. */
static void a_batch_is_needed_by_the_job_behind(void)
{
	struct plan_reader readers[2];
	struct plan *plan;

	CHECK(plan_open(1 << 20, &plan) == 0);
	for (uint64_t b = 0; b < 6; b++) {
		note(plan, 0, b);
		tell(plan, b, plan_done);
	}
	for (uint64_t b = 0; b < 3; b++) {
		note(plan, 0, b);
		tell(plan, b, plan_done);
	}
	CHECK(plan_readers(plan, readers, 2) == 2);
	CHECK(!is_needed(plan, 2) && is_needed(plan, 3) && is_needed(plan, 5));
	note(plan, 0, 6);
	tell(plan, 6, plan_done);
	CHECK(is_needed(plan, 6));
	/* But what it finds, it does not need. */
	note(plan, 0, 3);
	CHECK(is_needed(plan, 3));
	tell(plan, 3, plan_shared);
	CHECK(!is_needed(plan, 3));
	/* Ahead of both: for the first, which will find it, and not for the
	   second, which may not. */
	tell(plan, 7, plan_done);
	CHECK(is_needed(plan, 7));
	plan_close(plan);
}

static void a_batch_is_wanted_until_all_have_it(void)
{
	const struct batch_key key = { ds, &spec, 0, 1 },
			       later = { ds, &spec, 1, 1 };
	struct plan *plan;

	CHECK(plan_open(1 << 20, &plan) == 0);
	CHECK(!plan_wants(plan, &key));
	note(plan, 0, 0);
	CHECK(plan_wants(plan, &key) && plan_wants(plan, &later));
	note(plan, 0, 1);
	CHECK(!plan_wants(plan, &key) && plan_wants(plan, &later));
	note(plan, 0, 0);
	CHECK(plan_wants(plan, &key));
	note(plan, 0, 1);
	CHECK(!plan_wants(plan, &key));
	plan_close(plan);
}

/* The one that is behind at the end of an epoch is not taken for a straggler
   of the one that has begun the next. */
static void jobs_in_two_epochs_stay_apart(void)
{
	struct plan_reader readers[3];
	struct plan *plan;

	CHECK(plan_open(1 << 20, &plan) == 0);
	for (uint64_t b = 0; b < BATCHES; b++) {
		note(plan, 0, b);
		if (b >= 8)
			note(plan, 0, b - 8);
	}
	for (uint64_t b = 0; b < 8; b++) {
		note(plan, 1, b);
		note(plan, 0, BATCHES - 8 + b);
	}
	CHECK(plan_readers(plan, readers, 3) == 2);
	CHECK(readers[0].epoch == 1 && readers[0].number == 7);
	CHECK(readers[1].epoch == 0 && readers[1].number == BATCHES - 1);
	CHECK(readers[0].opened == BATCHES + 8 && readers[1].opened == BATCHES);
	plan_close(plan);
}

/* --- several jobs --- */

enum { HALF = SAMPLES / 2, FAR = HALF / 4 };

static const struct spec halves[2] = {
	{ .order = BETON_ORDER_SEQUENTIAL, .batch = BATCH, .end = HALF },
	{ .order = BETON_ORDER_SEQUENTIAL,
	  .batch = BATCH,
	  .first = HALF,
	  .end = SAMPLES },
};

static void note_half(struct plan *plan, unsigned half, uint64_t number)
{
	const struct batch_key key = { ds, &halves[half], 0, number };

	plan_note(plan, &key, NULL, NULL, 0);
}

static uint64_t use_of(struct plan *plan, uint64_t sample)
{
	const struct cache_file file = { .ds = ds, .per = 1 };

	return plan_next_use(plan, &file, sample);
}

/* The first job needs its next sample sooner than the second one needs a sample
   that is far ahead of it, though it began long before. */
static void expect_level(struct plan *plan, uint64_t first, uint64_t second)
{
	CHECK(use_of(plan, first) < use_of(plan, HALF + second + FAR));
	CHECK(use_of(plan, HALF + second) < use_of(plan, first + FAR));
}

static void a_job_that_comes_later_is_level(void)
{
	struct plan *plan;

	CHECK(plan_open(1 << 20, &plan) == 0);
	for (uint64_t b = 0; b < HALF / 2 / BATCH; b++)
		note_half(plan, 0, b);
	note_half(plan, 1, 0);
	expect_level(plan, HALF / 2, BATCH);
	plan_close(plan);
}

/* A job that pauses, for example for an evaluation, continues where it was. */
static void a_job_that_falls_behind_is_put_level(void)
{
	struct plan *plan;

	CHECK(plan_open(1 << 20, &plan) == 0);
	note_half(plan, 1, 0);
	for (uint64_t b = 0; b < HALF / 2 / BATCH; b++)
		note_half(plan, 0, b);
	note_half(plan, 1, 1);
	expect_level(plan, HALF / 2, 2 * BATCH);
	plan_close(plan);
}

int main(void)
{
	ds = made_open(SAMPLES, NULL);
	a_batch_is_needed_by_the_job_behind();
	a_batch_is_wanted_until_all_have_it();
	jobs_in_two_epochs_stay_apart();
	a_job_that_comes_later_is_level();
	a_job_that_falls_behind_is_put_level();
	dataset_close(ds);
	return 0;
}

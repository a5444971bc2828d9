/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/throughput.h"

#include <string.h>

#include "tests/unit/t.h"

#define MS UINT64_C(1000000)

static struct stage_lane lane;

static struct throughput throughput_of(uint32_t places)
{
	struct throughput p;

	memset(&lane, 0, sizeof(lane));
	throughput_init(&p, &lane, places);
	return p;
}

static void give(struct throughput *p, uint64_t now, uint32_t rows,
		 uint64_t bytes)
{
	const struct beton_batch batch = { .epoch = 5,
					   .number = 77,
					   .num_samples = rows };

	throughput_give(p, now, &batch, bytes);
}

static uint64_t sum(const struct throughput *p, enum throughput_sum which)
{
	return counters_get(&p->sums[which]);
}

static uint64_t delay(const struct throughput *p, enum stage stage)
{
	return counters_get(&p->delay_ns[stage]);
}

static void the_trainer_and_its_waits_are_distinguished(void)
{
	struct throughput_times times = { .fetched_ns = 1 };
	struct throughput p = throughput_of(2);
	const struct counters *next = &lane.stages[STAGE_NEXT];

	throughput_ask(&p, 10 * MS);
	throughput_look(&p, 0);
	throughput_waited(&p, 10 * MS, 15 * MS, &times);
	give(&p, 15 * MS, 32, 1000);
	throughput_ask(&p, 45 * MS);
	throughput_look(&p, 2);
	give(&p, 45 * MS, 16, 500);
	CHECK(sum(&p, PACE_BATCHES) == 2 && sum(&p, PACE_SAMPLES) == 48);
	CHECK(sum(&p, PACE_WAITS) == 1 && sum(&p, PACE_WAIT_NS) == 5 * MS);
	CHECK(sum(&p, PACE_TRAINER_NS) == 30 * MS);
	CHECK(sum(&p, PACE_READY) == 2);
	CHECK(sum(&p, PACE_EMPTY) == 1 && sum(&p, PACE_FULL) == 1);
	CHECK(counters_get(&next->items) == 2 &&
	      counters_get(&next->bytes) == 1500);
	CHECK(counters_get(&next->input_wait_ns) == 5 * MS);
	CHECK(counters_get(&next->times[histogram_bucket(5 * MS)]) == 1);
	CHECK(counters_get(&next->times[0]) == 1);
	CHECK(counters_get(&lane.stages[STAGE_TRAINER].items) == 1);
	CHECK(counters_get(&lane.stages[STAGE_TRAINER].busy_ns) == 30 * MS);
}

/* More than `prefetch` may be ready for a moment. */
static void the_queue_is_never_more_than_full(void)
{
	struct throughput p = throughput_of(2);

	throughput_look(&p, 3);
	CHECK(sum(&p, PACE_READY) == 2 && sum(&p, PACE_FULL) == 1);
}

/* The stages of the batch while the trainer waited, and no earlier ones. */
static void a_wait_is_the_stage_s_that_had_the_batch(void)
{
	struct throughput_times times = {
		.fetched_ns = 30 * MS,
		.made_ns = 70 * MS,
		.busy_ns = 80 * MS,
		.decode_ns = 60 * MS,
	};
	struct throughput p = throughput_of(2);

	throughput_waited(&p, 10 * MS, 71 * MS, &times);
	CHECK(delay(&p, STAGE_READ) == 20 * MS);
	CHECK(delay(&p, STAGE_DECODE) == 41 * MS * 3 / 4);
	CHECK(delay(&p, STAGE_TRANSFORM) == 41 * MS / 4);
	CHECK(delay(&p, STAGE_UPLOAD) == 0);

	p = throughput_of(2);
	times.has_upload = true;
	throughput_waited(&p, 50 * MS, 78 * MS, &times);
	CHECK(delay(&p, STAGE_READ) == 0);
	CHECK(delay(&p, STAGE_DECODE) == 15 * MS);
	CHECK(delay(&p, STAGE_TRANSFORM) == 5 * MS);
	CHECK(delay(&p, STAGE_UPLOAD) == 8 * MS);

	/* One that only went to the GPU, and one that never came. */
	p = throughput_of(2);
	throughput_waited(&p, 75 * MS, 78 * MS, &times);
	CHECK(delay(&p, STAGE_UPLOAD) == 3 * MS);
	throughput_waited(&p, 80 * MS, 81 * MS, NULL);
	CHECK(delay(&p, STAGE_READ) == 1 * MS);
	CHECK(sum(&p, PACE_WAIT_NS) == 4 * MS);
}

static void waits_for_the_upload_after_all(void)
{
	struct throughput p = throughput_of(2);

	throughput_ask(&p, 10 * MS);
	give(&p, 11 * MS, 1, 1);
	throughput_waited_for_upload(&p, 14 * MS);
	throughput_ask(&p, 20 * MS);
	CHECK(sum(&p, PACE_WAIT_NS) == 3 * MS);
	CHECK(delay(&p, STAGE_UPLOAD) == 3 * MS);
	CHECK(sum(&p, PACE_TRAINER_NS) == 6 * MS);
}

/* All counted figures are reported, and no others. */
static void figures_are_the_sums(void)
{
	struct throughput_times times = { .fetched_ns = 2 * MS,
					  .busy_ns = 4,
					  .decode_ns = 1 };
	struct rank_figures f = { .n = { [FIGURE_READ_NS] = 9 } };
	struct throughput p = throughput_of(3);

	throughput_ask(&p, 1 * MS);
	throughput_look(&p, 2);
	throughput_waited(&p, 1 * MS, 6 * MS, &times);
	give(&p, 6 * MS, 10, 1);
	throughput_waited_for_upload(&p, 8 * MS);
	throughput_ask(&p, 15 * MS);
	throughput_figures(&p, &f);
	CHECK(f.epoch == 5 && f.number == 77);
	CHECK(f.n[FIGURE_BATCHES] == 1 && f.n[FIGURE_SAMPLES] == 10);
	CHECK(f.n[FIGURE_WAITS] == 1 && f.n[FIGURE_WAIT_NS] == 7 * MS);
	CHECK(f.n[FIGURE_TRAINER_NS] == 7 * MS);
	CHECK(f.n[FIGURE_QUEUE_READY] == 2 && f.n[FIGURE_QUEUE_CAPACITY] == 3);
	CHECK(f.n[FIGURE_READ_DELAY_NS] == 1 * MS);
	CHECK(f.n[FIGURE_DECODE_DELAY_NS] == 1 * MS);
	CHECK(f.n[FIGURE_TRANSFORM_DELAY_NS] == 3 * MS);
	CHECK(f.n[FIGURE_UPLOAD_DELAY_NS] == 2 * MS);
	CHECK(f.n[FIGURE_READ_NS] == 9 && !f.n[FIGURE_OPEN_NS]);
}

/* --- epochs --- */

/* Batches of 100 for which the trainer waits and then takes so long. */
static uint64_t run(struct throughput *p, uint64_t at, unsigned n,
		    uint64_t wait, uint64_t work)
{
	const struct throughput_times decoding = { .fetched_ns = 1,
						   .busy_ns = 3,
						   .decode_ns = 2 };

	for (unsigned i = 0; i < n; i++) {
		throughput_ask(p, at);
		if (!i)
			throughput_begin(p, at);
		throughput_look(p, wait ? 0 : 3);
		if (wait)
			throughput_waited(p, at, at + wait, &decoding);
		at += wait;
		give(p, at, 100, 1);
		at += work;
	}
	throughput_ask(p, at);
	return at;
}

static void an_epoch_has_a_line(void)
{
	char line[PACE_LINE_SIZE];
	struct throughput p = throughput_of(4);
	uint64_t at = run(&p, 7 * MS, 1000, 0, 400 * MS);

	throughput_end(&p, at, 3, line);
	CHECK(!strcmp(
		line,
		"epoch 3: 100000 samples in 400 s, 250/s; queue 75 % full; the trainer waited 0.0 % of the time for data: data is not your bottleneck"));
	/* Another time is not this epoch's. */
	at = run(&p, at + 9000 * MS, 10, 300 * MS, 700 * MS);
	throughput_end(&p, at, 4, line);
	CHECK(!strcmp(
		line,
		"epoch 4: 1000 samples in 10.0 s, 100/s; queue 0 % full; the trainer waited 30.0 % of the time for data: the stage decode made it wait longest"));
	/* Nor is the time between them the trainer's. */
	CHECK(sum(&p, PACE_TRAINER_NS) == 407000 * MS);
	throughput_end(&p, at, 5, line);
	CHECK(!*line);
}

static void an_incomplete_epoch_has_no_line(void)
{
	char line[PACE_LINE_SIZE];
	struct throughput p = throughput_of(4);
	uint64_t at;

	/* It never began: the trainer came to the middle of it. */
	throughput_ask(&p, 1 * MS);
	give(&p, 2 * MS, 10, 1);
	throughput_end(&p, 3 * MS, 0, line);
	CHECK(!*line);
	/* It went elsewhere, or a batch failed. */
	at = run(&p, 4 * MS, 3, 1 * MS, 1 * MS);
	throughput_break(&p);
	throughput_end(&p, at, 1, line);
	CHECK(!*line);
	/* There was nothing in it. */
	throughput_begin(&p, at);
	throughput_end(&p, at + 1, 2, line);
	CHECK(!*line);
}

int main(void)
{
	the_trainer_and_its_waits_are_distinguished();
	the_queue_is_never_more_than_full();
	a_wait_is_the_stage_s_that_had_the_batch();
	waits_for_the_upload_after_all();
	figures_are_the_sums();
	an_epoch_has_a_line();
	an_incomplete_epoch_has_no_line();
	return 0;
}

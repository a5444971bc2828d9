/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/reader.h"
#include "tests/unit/made.h"

enum { SAMPLES = 1000, BATCH = 10, BATCHES = SAMPLES / BATCH };

static struct dataset *ds;

static struct spec spec_of(enum beton_order order)
{
	return (struct spec){
		.order = order,
		.batch = BATCH,
		.drop_last = 1,
		.block = order == BETON_ORDER_QUASI_RANDOM ? 7 : 0,
		.window = order == BETON_ORDER_QUASI_RANDOM ? 150 : 0,
		.end = SAMPLES,
	};
}

static struct batch_key key_of(const struct spec *spec, uint64_t epoch,
			       uint64_t number)
{
	return (struct batch_key){ ds, spec, epoch, number };
}

static void open_batch(struct reader *r, uint64_t epoch, uint64_t number)
{
	struct batch_key key = key_of(&r->spec, epoch, number);

	CHECK(reader_matches(r, &key));
	reader_advance(r, &key, NULL);
	CHECK(reader_awaits(r, 0, number) || epoch < r->epoch);
	reader_done(r, &key);
}

static bool matches(const struct reader *r, uint64_t epoch, uint64_t number)
{
	struct batch_key key = key_of(&r->spec, epoch, number);

	return reader_matches(r, &key);
}

static void begin(struct reader *r, const struct spec *spec, uint64_t number)
{
	struct batch_key key = key_of(spec, 3, number);

	reader_init(r, &key);
	reader_advance(r, &key, NULL);
	reader_done(r, &key);
}

/* The next use is the first place in this epoch or the next that is still to
   come: compared with walking through both. */
static void next_use_is_what_walking_finds(struct spec spec)
{
	struct order orders[2] = { order_init(&spec, 3), order_init(&spec, 4) };
	struct reader r;
	uint64_t at;

	begin(&r, &spec, 0);
	for (uint64_t b = 1; b < 40; b++)
		open_batch(&r, 3, b);
	CHECK(reader_position(&r) == 40 * BATCH);
	for (uint64_t s = 0; s < SAMPLES; s++) {
		if (order_position(&orders[0], s, 0) == ORDER_NONE)
			continue;
		for (at = 40 * BATCH; at < 2 * SAMPLES; at++) {
			if (order_sample(&orders[at / SAMPLES], at % SAMPLES) ==
			    s)
				break;
		}
		CHECK(reader_next_use(&r, s) == at);
	}
	CHECK(reader_next_use(&r, SAMPLES) == READER_NEVER);
}

/* Some samples have several places, and some none. */
static void next_use_of_a_list_is_what_walking_finds(void)
{
	struct subset list = { .n = SAMPLES, .repeats = true };
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	uint64_t ids[SAMPLES];
	uint32_t sorted[SAMPLES];

	for (uint64_t i = 0; i < SAMPLES; i++) {
		ids[i] = SAMPLES - 2 - i / 4 * 3;
		sorted[SAMPLES - 4 - i / 4 * 4 + i % 4] = (uint32_t)i;
	}
	list.ids = ids;
	list.sorted = sorted;
	spec.subset = &list;
	next_use_is_what_walking_finds(spec);
}

/* The first draw of a sample from `at` on, before `end`, or `end`. */
static uint64_t walk(const struct order *orders, uint64_t draws, uint64_t at,
		     uint64_t end, uint64_t sample)
{
	while (at < end &&
	       order_sample(&orders[at / draws], at % draws) != sample)
		at++;
	return at;
}

/* Samples 0 to 999 by weights of 1 to 1000 in epochs of so many draws, when
   the reader has come to a batch. */
static void next_use_of_draws(uint64_t draws, uint64_t batch)
{
	uint64_t ids[SAMPLES], sums[SAMPLES], end, at;
	const struct subset list = { .n = SAMPLES, .ids = ids, .sums = sums };
	struct spec spec = spec_of(BETON_ORDER_WEIGHTED);
	struct order orders[2];
	struct reader r;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		ids[i] = i;
		sums[i] = (i ? sums[i - 1] : 0) + i + 1;
	}
	spec.draws = draws;
	spec.subset = &list;
	orders[0] = order_init(&spec, 3);
	orders[1] = order_init(&spec, 4);
	begin(&r, &spec, 0);
	for (uint64_t b = 1; b <= batch; b++) {
		open_batch(&r, 3, b);
		/* Wherever it begins to look. */
		reader_next_use(&r, 0);
	}
	at = (batch + 1) * BATCH;
	end = min_u64(2 * draws, at + DRAWS_POSITIONS / 2);
	for (uint64_t s = 0; s < SAMPLES; s++) {
		uint64_t use = reader_next_use(&r, s);
		uint64_t seen = walk(orders, draws, at, end, s);

		CHECK(seen < end ? use == seen : use >= end);
	}
	reader_fini(&r);
}

/* The next samples of sampling with replacement are known for a while; after
   that, the plan estimates them by the weights. */
static void draws_are_foreseen(void)
{
	next_use_of_draws(SAMPLES, 0);
	next_use_of_draws(SAMPLES, 40);
	next_use_of_draws(SAMPLES, BATCHES - 1);
	next_use_of_draws(40 * SAMPLES, 0);
	next_use_of_draws(40 * SAMPLES, 3000);
	next_use_of_draws(40 * SAMPLES, 3999);
}

static void frequent_samples_are_needed_soon(void)
{
	uint64_t ids[] = { 3, 5, 7 };
	uint64_t sums[] = { 1, 1, (uint64_t)1 << 40 };
	const struct subset list = { .n = 3, .ids = ids, .sums = sums };
	struct spec spec = spec_of(BETON_ORDER_WEIGHTED);
	struct reader r;

	spec.draws = SAMPLES;
	spec.subset = &list;
	begin(&r, &spec, 0);
	CHECK(r.batches == BATCHES && r.samples == SAMPLES);
	CHECK(reader_next_use(&r, 7) == BATCH);
	CHECK(reader_next_use(&r, 3) == UINT32_MAX + (uint64_t)2 * SAMPLES);
	CHECK(reader_next_use(&r, 5) == READER_NEVER);
	CHECK(reader_next_use(&r, 4) == READER_NEVER);
	reader_fini(&r);
}

/* Threads and ranks of one job open batches out of order, each once. */
static void one_job_is_one_reader(void)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	static const uint64_t opened[] = { 8, 1, 0, 2, 9, 3, 10, 4 };
	struct reader r;

	begin(&r, &spec, opened[0]);
	for (size_t i = 1; i < ARRAY_LEN(opened); i++)
		open_batch(&r, 3, opened[i]);
	CHECK(r.stride == 1 && r.top == 10);
	for (size_t i = 0; i < ARRAY_LEN(opened); i++) {
		CHECK(!reader_awaits(&r, 0, opened[i]));
		/* For a second time it is another job's. */
		CHECK(!matches(&r, 3, opened[i]));
	}
	for (uint64_t b = 5; b < 8; b++)
		CHECK(reader_awaits(&r, 0, b) && matches(&r, 3, b));
	CHECK(reader_awaits(&r, 0, 11) && !reader_awaits(&r, 0, BATCHES));
	CHECK(reader_awaits(&r, 1, 0));
	CHECK(!matches(&r, 3, 11 + READER_LAG) && !matches(&r, 5, 0));
}

/* One rank of four on this machine: only its batches are wanted. */
static void a_lone_rank_has_a_stride(void)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	struct reader r;
	uint64_t number = 6;
	unsigned k = 0;

	begin(&r, &spec, 2);
	CHECK(!reader_next(&r, &k, &number));
	open_batch(&r, 3, 6);
	CHECK(r.stride == 4);
	CHECK(reader_next(&r, &k, &number) && k == 0 && number == 10);
	CHECK(!reader_awaits(&r, 0, 11) && reader_awaits(&r, 0, 14));
	number = BATCHES - 2;
	CHECK(reader_next(&r, &k, &number) && k == 1 && number == 2);
	/* Other ranks turn out to be here as well. */
	open_batch(&r, 3, 3);
	CHECK(r.stride == 1 && reader_awaits(&r, 0, 11));
}

static void open_as(struct reader *r, uint64_t epoch, uint64_t number,
		    uint32_t rank, uint32_t world_size)
{
	const struct batch_share share = { rank, world_size };
	struct batch_key key = key_of(&r->spec, epoch, number);

	reader_advance(r, &key, &share);
	reader_done(r, &key);
}

static void begin_as(struct reader *r, const struct spec *spec, uint64_t number,
		     uint32_t rank, uint32_t world_size)
{
	struct batch_key key = key_of(spec, 3, number);

	reader_init(r, &key);
	open_as(r, 3, number, rank, world_size);
}

/* Two ranks of eight, which began the epoch after 12 batches: batches of the
   next epoch begin at 0 again. */
static void loaders_report_their_ranks(void)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	uint64_t number = 13;
	struct reader r;
	unsigned k = 0;

	begin_as(&r, &spec, 13, 1, 8);
	CHECK(reader_step(&r) == 8);
	CHECK(reader_awaits(&r, 0, 21) && !reader_awaits(&r, 0, 17));
	CHECK(reader_awaits(&r, 1, 1) && !reader_awaits(&r, 1, 5));
	r.ahead = 40 * BATCH;
	open_as(&r, 3, 14, 2, 8);
	CHECK(reader_step(&r) == 4 && r.ahead == 14 * BATCH);
	CHECK(reader_awaits(&r, 0, 21) && reader_awaits(&r, 0, 22));
	CHECK(!reader_awaits(&r, 0, 23) && reader_awaits(&r, 1, 2));
	CHECK(reader_next(&r, &k, &number) && number == 21);
	CHECK(reader_next(&r, &k, &number) && number == 22);
	CHECK(reader_next(&r, &k, &number) && !k && number == 29);
	number = BATCHES - 2;
	CHECK(reader_next(&r, &k, &number) && k == 1 && number == 1);
	CHECK(reader_next(&r, &k, &number) && k == 1 && number == 2);
	open_as(&r, 4, 1, 1, 8);
	CHECK(reader_awaits(&r, 0, 9) && reader_awaits(&r, 0, 10) &&
	      !reader_awaits(&r, 0, 13));
	/* A reader that reports nothing may be any rank. */
	open_batch(&r, 4, 4);
	CHECK(reader_step(&r) == 1 && reader_awaits(&r, 0, 5));
}

/* Rank 5 of 8 repeats an early batch at the end, which rank 1 has opened. It
   does not take over the batches of rank 1. */
static void padding_is_no_other_rank(bool reports)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	uint32_t world = reports ? 8 : 0;
	struct reader r;

	begin_as(&r, &spec, 5, 5, world);
	for (uint64_t b = 13; b < BATCHES; b += 8)
		open_as(&r, 3, b, 5, world);
	open_as(&r, 3, 1, 5, world);
	CHECK(reader_step(&r) == 8 && r.first == 5);
	CHECK(reader_awaits(&r, 1, 13) && !reader_awaits(&r, 1, 9));
}

/* Four ranks become eight in the middle of an epoch. */
static void strides_are_learned_again(void)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	struct reader r;

	begin(&r, &spec, 0);
	for (uint64_t b = 4; b <= 48; b += 4)
		open_batch(&r, 3, b);
	for (uint64_t b = 56; b < BATCHES; b += 8)
		open_batch(&r, 3, b);
	for (unsigned epoch = 4; epoch < 6; epoch++) {
		for (uint64_t b = 0; b < BATCHES; b += 8)
			open_batch(&r, epoch, b);
		CHECK(reader_step(&r) == (epoch == 4 ? 4 : 8));
	}
}

static void the_next_epoch_continues(void)
{
	struct spec spec = spec_of(BETON_ORDER_RANDOM);
	struct reader r;

	begin(&r, &spec, BATCHES - 3);
	open_batch(&r, 3, BATCHES - 2);
	r.ahead = SAMPLES + 2 * BATCH;
	open_batch(&r, 4, 0);
	CHECK(r.epoch == 4 && r.passed == 1 && r.ahead == 2 * BATCH);
	/* A straggler is not a new reader, and does not turn this one back. */
	open_batch(&r, 3, BATCHES - 1);
	CHECK(r.epoch == 4 && r.top == 0 && r.opened == 4);
	CHECK(reader_position(&r) == SAMPLES + BATCH);
}

/* The plan waits only for a while for samples that a reader skipped for
   good. */
static void holes_are_given_up(void)
{
	struct spec spec = spec_of(BETON_ORDER_SEQUENTIAL);
	struct reader r;

	spec.batch = 1;
	begin(&r, &spec, 0);
	open_batch(&r, 3, 1);
	for (uint64_t b = 3; b <= 3 + READER_LAG; b++) {
		CHECK(reader_awaits(&r, 0, 2) == (b - 1 - 2 <= READER_LAG));
		open_batch(&r, 3, b);
	}
	CHECK(!reader_awaits(&r, 0, 2) && !matches(&r, 3, 2));
	for (uint64_t b = 4 + READER_LAG; b < 990; b++)
		open_batch(&r, 3, b);
	CHECK(!reader_awaits(&r, 0, 500) && !matches(&r, 3, 989));
}

int main(void)
{
	ds = made_open(SAMPLES, NULL);
	next_use_is_what_walking_finds(spec_of(BETON_ORDER_SEQUENTIAL));
	next_use_is_what_walking_finds(spec_of(BETON_ORDER_RANDOM));
	next_use_is_what_walking_finds(spec_of(BETON_ORDER_QUASI_RANDOM));
	next_use_of_a_list_is_what_walking_finds();
	draws_are_foreseen();
	frequent_samples_are_needed_soon();
	one_job_is_one_reader();
	a_lone_rank_has_a_stride();
	loaders_report_their_ranks();
	padding_is_no_other_rank(false);
	padding_is_no_other_rank(true);
	strides_are_learned_again();
	the_next_epoch_continues();
	holes_are_given_up();
	dataset_close(ds);
	return 0;
}

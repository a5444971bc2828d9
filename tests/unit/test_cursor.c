/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/loop/cursor.h"
#include "tests/unit/t.h"

enum { NUMBERS_MAX = 64 };

static struct spec spec_of(uint64_t samples, uint64_t batch, int drop_last)
{
	return (struct spec){
		.order = BETON_ORDER_RANDOM,
		.batch = batch,
		.drop_last = (uint64_t)drop_last,
		.end = samples,
	};
}

/* Numbers that a rank is given until the epoch ends. */
static size_t numbers_of(const struct spec *spec, uint64_t consumed,
			 uint32_t rank, uint32_t world_size,
			 uint64_t out[NUMBERS_MAX])
{
	struct cursor c = { .spec = spec,
			    .rank = rank,
			    .world_size = world_size };
	size_t n = 0;

	cursor_seek(&c, 0, consumed);
	for (; !cursor_at_end(&c); c.step++) {
		CHECK(n < NUMBERS_MAX);
		out[n++] = cursor_number(&c);
	}
	CHECK(cursor_consumed(&c) == spec_batches(spec));
	return n;
}

/* All ranks together, from any place: the model is a loop over steps. */
static void check_world_size(const struct spec *spec, uint64_t consumed,
			     uint32_t world_size)
{
	uint64_t n = spec_batches(spec), got[NUMBERS_MAX], next = consumed;
	size_t steps = 0;

	for (uint64_t left = n - consumed; left; steps++) {
		if (left < world_size && spec->drop_last)
			break;
		left -= min_u64(left, world_size);
	}
	for (uint32_t rank = 0; rank < world_size; rank++) {
		CHECK(numbers_of(spec, consumed, rank, world_size, got) ==
		      steps);
		for (size_t i = 0; i < steps; i++)
			CHECK(got[i] == next + rank + i * world_size);
	}
}

static void ranks_share_one_sequence_in_equal_steps(void)
{
	for (uint64_t samples = 0; samples < 25; samples++) {
		for (int drop = 0; drop < 2; drop++) {
			const struct spec spec = spec_of(samples, 2, drop);
			uint64_t n = spec_batches(&spec);

			for (uint64_t c = 0; c < n; c++) {
				for (uint32_t w = 1; w < 9; w++)
					check_world_size(&spec, c, w);
			}
		}
	}
}

static void padding_has_numbers_past_the_sequence(void)
{
	const struct spec spec = spec_of(5, 1, 0);
	uint64_t got[NUMBERS_MAX];

	CHECK(numbers_of(&spec, 0, 3, 4, got) == 2);
	CHECK(got[0] == 3 && got[1] == 7);
	/* More ranks than batches: the sequence is repeated as often. */
	CHECK(numbers_of(&spec, 0, 11, 12, got) == 1 && got[0] == 11);
}

static void a_finished_epoch_is_the_start_of_the_next(void)
{
	const struct spec spec = spec_of(6, 2, 1);
	struct cursor c = { .spec = &spec, .world_size = 2 };

	cursor_seek(&c, 4, 2);
	CHECK(c.epoch == 4 && c.start == 2);
	cursor_seek(&c, 4, 3);
	CHECK(c.epoch == 5 && c.start == 0 && c.step == 0);
	cursor_seek(&c, 4, UINT64_MAX);
	CHECK(c.epoch == 5 && c.start == 0);
}

static void an_empty_epoch_never_moves(void)
{
	const struct spec spec = spec_of(0, 2, 1);
	struct cursor c = { .spec = &spec, .world_size = 1 };

	cursor_seek(&c, 7, 0);
	CHECK(c.epoch == 7 && cursor_at_end(&c) && cursor_consumed(&c) == 0);
}

static void consumed_counts_whole_steps_of_all_ranks(void)
{
	const struct spec spec = spec_of(10, 1, 1);
	struct cursor c = { .spec = &spec, .rank = 1, .world_size = 4 };

	cursor_seek(&c, 0, 1);
	CHECK(cursor_consumed(&c) == 1);
	c.step = 1;
	CHECK(cursor_consumed(&c) == 5 && !cursor_at_end(&c));
	c.step = 2;
	/* Batch 9 is of no whole step, and dropped. */
	CHECK(cursor_at_end(&c) && cursor_consumed(&c) == 10);
}

/* The numbers of all ranks from any place, each once. */
static void check_unpadded(const struct spec *spec, uint64_t consumed,
			   uint32_t world_size)
{
	uint64_t n = spec_batches(spec), seen = 0;

	for (uint32_t rank = 0; rank < world_size; rank++) {
		struct cursor c = { .spec = spec,
				    .rank = rank,
				    .world_size = world_size,
				    .no_padding = true };

		cursor_seek(&c, 0, consumed);
		CHECK(cursor_consumed(&c) == consumed);
		for (; !cursor_at_end(&c); c.step++) {
			uint64_t number = cursor_number(&c);

			CHECK(number < n && !(seen >> number & 1));
			CHECK(cursor_consumed(&c) ==
			      consumed + c.step * world_size);
			seen |= (uint64_t)1 << number;
		}
		/* Only now are those of other ranks taken as well. */
		cursor_finish(&c);
		CHECK(cursor_at_end(&c) && cursor_consumed(&c) == n);
	}
	CHECK(seen == ((uint64_t)1 << n) - ((uint64_t)1 << consumed));
}

static void without_padding_each_batch_is_delivered_once(void)
{
	for (uint64_t samples = 1; samples < 25; samples++) {
		const struct spec spec = spec_of(samples, 2, 0);

		for (uint64_t c = 0; c < spec_batches(&spec); c++) {
			for (uint32_t w = 1; w < 15; w++)
				check_unpadded(&spec, c, w);
		}
	}
}

int main(void)
{
	ranks_share_one_sequence_in_equal_steps();
	padding_has_numbers_past_the_sequence();
	a_finished_epoch_is_the_start_of_the_next();
	an_empty_epoch_never_moves();
	consumed_counts_whole_steps_of_all_ranks();
	without_padding_each_batch_is_delivered_once();
	return 0;
}

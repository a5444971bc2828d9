/* SPDX-License-Identifier: Apache-2.0 */
/* Lost samples: one line for many, and an end after many in a row. */
#include <errno.h>

#include "beton/beton.h"
#include "loader/run/ring/losses.h"
#include "tests/unit/t.h"

enum { BATCH = 8, EPOCH = 1000 };

static void test_damage_is_no_loss(void)
{
	const struct losses near = { .is_remote = false };
	const struct losses far = { .is_remote = true };

	CHECK(losses_have(&far, EIO) && losses_have(&far, ESTALE));
	CHECK(!losses_have(&near, EIO) && losses_have(&near, ETIMEDOUT));
	CHECK(!losses_have(&far, 0) && !losses_have(&far, BETON_ECORRUPT) &&
	      !losses_have(&far, EOPNOTSUPP));
}

static void lose(struct losses *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		losses_add(l);
}

static void test_one_line_and_a_number(void)
{
	struct losses l = { 0 };
	uint64_t unlogged;

	CHECK(losses_add(&l));
	for (unsigned i = 0; i < 9; i++)
		CHECK(!losses_add(&l));
	CHECK(!losses_take(&l, BATCH, BATCH, EPOCH, &unlogged) && !unlogged);
	CHECK(!losses_take(&l, BATCH, 2, EPOCH, &unlogged) && !unlogged);
	CHECK(!losses_take(&l, BATCH, 0, EPOCH, &unlogged) && unlogged == 9);
	CHECK(!losses_take(&l, BATCH, 0, EPOCH, &unlogged) && !unlogged);
	CHECK(losses_add(&l));
	CHECK(!losses_end(&l));
}

/* Returns how many batches without another sample are taken until the ring
   fails. */
static unsigned count_taken(uint32_t samples, uint64_t epoch)
{
	struct losses l = { 0 };
	uint64_t unlogged;

	for (unsigned n = 0;; n++) {
		lose(&l, samples);
		if (losses_take(&l, samples, samples, epoch, &unlogged))
			return n;
	}
}

static void test_an_end(void)
{
	CHECK(count_taken(1, EPOCH) == LOSSES_MAX - 1);
	CHECK(count_taken(BATCH, EPOCH) == LOSSES_MAX / BATCH - 1);
	CHECK(count_taken(LOSSES_MAX, EPOCH) == 0);
	CHECK(count_taken(BATCH, 3) == 2);
}

static void test_a_sample_begins_the_count_again(void)
{
	struct losses l = { 0 };
	uint64_t unlogged;

	for (unsigned i = 0; i < 100 * LOSSES_MAX; i++) {
		uint32_t lost = BATCH - !(i % 8);

		lose(&l, lost);
		CHECK(!losses_take(&l, BATCH, lost, EPOCH, &unlogged));
	}
}

int main(void)
{
	test_damage_is_no_loss();
	test_one_line_and_a_number();
	test_an_end();
	test_a_sample_begins_the_count_again();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/idct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/planes.h"
#include "tests/unit/t.h"

/* The side of the blocks of each transform, and its definition. */
static const struct {
	unsigned side;
	idct_fn *plain;
} sides[] = { { 8, idct_plain }, { 4, idct_plain4 }, { 2, idct_plain2 } };

enum { BLOCKS = 64, GUARD = 0xa5, STRIDE = 24, OUT = STRIDE * IDCT_SIDE };

/* Coefficients by rows, the usual order. */
struct block {
	int16_t coefficients[IDCT_SIZE];
};

struct aligned {
	_Alignas(IDCT_ALIGN) int16_t v[IDCT_SIZE + 1];
};

/* The index of zigzag position k in a block by rows. */
static uint8_t natural[IDCT_SIZE];

static void make_natural(void)
{
	int k = 0;

	for (int sum = 0; sum < 2 * IDCT_SIDE - 1; sum++)
		for (int i = 0; i <= sum; i++) {
			int r = sum % 2 ? i : sum - i;
			int c = sum - r;

			if (r < IDCT_SIDE && c < IDCT_SIDE)
				natural[k++] = (uint8_t)(r * IDCT_SIDE + c);
		}
	CHECK(k == IDCT_SIZE);
}

static void ordered(const int16_t *in, struct aligned *out)
{
	for (int k = 0; k < IDCT_SIZE; k++)
		out->v[IDCT_PLACE[k]] = in[natural[k]];
}

static void every_coefficient_has_its_place(void)
{
	bool used[IDCT_SIZE] = { 0 };

	for (int k = 0; k < IDCT_SIZE; k++) {
		CHECK(IDCT_PLACE[k] < IDCT_SIZE && !used[IDCT_PLACE[k]]);
		used[IDCT_PLACE[k]] = true;
	}
	for (int k = IDCT_SIZE; k < IDCT_SIZE + IDCT_PAST; k++)
		CHECK(IDCT_PLACE[k] == IDCT_SIZE);
}

static void run(idct_fn *idct, unsigned side, const struct block *block,
		const int16_t *quant, uint8_t out[OUT])
{
	int n = (int)side;
	struct aligned c;
	struct aligned q;

	memset(out, GUARD, OUT);
	ordered(block->coefficients, &c);
	ordered(quant, &q);
	idct(c.v, q.v, out, STRIDE);
	for (int i = 0; i < IDCT_SIZE; i++)
		CHECK(!c.v[i]);
	for (int i = 0; i < OUT; i++)
		CHECK((i % STRIDE < n && i / STRIDE < n) || out[i] == GUARD);
}

static int16_t number(struct rng *rng, int32_t max)
{
	uint64_t v = rng_next(rng);

	switch (v % 7) {
	case 0:
		return (int16_t)max;
	case 1:
		return (int16_t)-max;
	default:
		return (int16_t)((int64_t)(v >> 8) % (max + 1) *
				 (v & 128 ? 1 : -1));
	}
}

/* One in `sparse` is not 0, and none below `rows`. */
static struct block random_block(struct rng *rng, int32_t max, unsigned sparse,
				 int rows)
{
	struct block b = { 0 };

	for (int i = 0; i < rows * IDCT_SIDE; i++)
		if (!(rng_next(rng) % sparse))
			b.coefficients[i] = number(rng, max);
	return b;
}

static void check_same(const struct block *block, const int16_t *quant)
{
	uint8_t plain[OUT];
	uint8_t best[OUT];

	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		unsigned side = sides[i].side;

		run(sides[i].plain, side, block, quant, plain);
		run(idct_best(side), side, block, quant, best);
		CHECK(!memcmp(plain, best, OUT));
	}
}

static void vectors_give_what_the_plain_version_gives(void)
{
	static const int32_t largest[] = { 1, 20, 1023, 2047, INT16_MAX };
	struct rng rng = { .key = 1 };
	int16_t quant[IDCT_SIZE];

	for (int i = 0; i < 200000; i++) {
		int32_t max = largest[i % (int)ARRAY_LEN(largest)];
		struct block b =
			random_block(&rng, max, 1 + (unsigned)i / 7 % 20,
				     i % 3 ? 8 : 1 + i % 8);

		for (int k = 0; k < IDCT_SIZE; k++)
			quant[k] =
				(int16_t)(i % 2 ? 1 + k
						: (int)(rng_next(&rng) & 255));
		check_same(&b, quant);
	}
}

static void check_flat(idct_fn *idct, unsigned side)
{
	for (int dc = -2048; dc < 2048; dc++)
		for (int16_t q = 0; q < 256; q = (int16_t)(q + 5)) {
			struct block b = { .coefficients = { (int16_t)dc } };
			int16_t quant[IDCT_SIZE] = { q };
			uint8_t want = idct_flat(dc, q, side);
			uint8_t out[OUT];

			run(idct, side, &b, quant, out);
			for (unsigned y = 0; y < side; y++)
				for (unsigned x = 0; x < side; x++)
					CHECK(out[y * STRIDE + x] == want);
		}
}

static void a_dc_coefficient_alone_is_flat(void)
{
	for (size_t i = 0; i < ARRAY_LEN(sides); i++)
		check_flat(sides[i].plain, sides[i].side);
}

/* The mean of n x n samples from (x, y) on. */
static double mean_of(const uint8_t *samples, unsigned x, unsigned y,
		      unsigned n)
{
	double sum = 0;

	for (unsigned k = 0; k < n * n; k++)
		sum += samples[(y + k / n) * STRIDE + x + k % n];
	return sum / (n * n);
}

/* Where none is limited, reduced samples are means, but for the rounding. */
static void reduced_samples_are_means(void)
{
	struct rng rng = { .key = 3 };
	int16_t quant[IDCT_SIZE];

	for (int k = 0; k < IDCT_SIZE; k++)
		quant[k] = 1;
	for (int i = 0; i < 20000; i++) {
		struct block b = random_block(&rng, 15, 1 + (unsigned)i % 9, 8);
		unsigned side = i % 2 ? 4 : 2, n = IDCT_SIDE / side;
		uint8_t full[OUT], reduced[OUT];

		run(idct_plain, IDCT_SIDE, &b, quant, full);
		run(idct_best(side), side, &b, quant, reduced);
		for (unsigned y = 0; y < side; y++)
			for (unsigned x = 0; x < side; x++) {
				double d = reduced[y * STRIDE + x] -
					   mean_of(full, x * n, y * n, n);

				CHECK(__builtin_fabs(d) <= 1.05);
			}
	}
}

static void set_tables(struct jpeg_compress_struct *c, const int16_t *quant)
{
	unsigned table[IDCT_SIZE];

	for (int i = 0; i < IDCT_SIZE; i++)
		table[i] = (unsigned)quant[i];
	jpeg_add_quant_table(c, 0, table, 100, TRUE);
	c->optimize_coding = TRUE;
}

/* A row of blocks as a gray JPEG. */
static void encode(const struct block *blocks, const int16_t *quant,
		   uint8_t **bytes, unsigned long *size)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr error;
	jvirt_barray_ptr array;
	JBLOCKARRAY rows;

	c.err = jpeg_std_error(&error);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, bytes, size);
	c.image_width = BLOCKS * IDCT_SIDE;
	c.image_height = IDCT_SIDE;
	c.input_components = 1;
	c.in_color_space = JCS_GRAYSCALE;
	jpeg_set_defaults(&c);
	set_tables(&c, quant);
	array = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE,
					   BLOCKS, 1, 1);
	jpeg_write_coefficients(&c, &array);
	rows = c.mem->access_virt_barray((j_common_ptr)&c, array, 0, 1, TRUE);
	for (int i = 0; i < BLOCKS; i++)
		memcpy(rows[0][i], blocks[i].coefficients, sizeof(*blocks));
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
}

static void check_blocks(const struct block *blocks, const int16_t *quant,
			 size_t side, const struct plane *want)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		const uint8_t *p = want->samples + i * side;
		uint8_t out[OUT] = { idct_flat(blocks[i].coefficients[0],
					       quant[0], 1) };

		if (side > 1)
			run(idct_best((unsigned)side), (unsigned)side,
			    &blocks[i], quant, out);
		for (size_t y = 0; y < side; y++)
			CHECK(!memcmp(out + y * STRIDE, p + y * want->stride,
				      side));
	}
}

static void check_libjpeg(const struct block *blocks, const int16_t *quant)
{
	unsigned long size = 0;
	uint8_t *bytes = NULL;
	struct planes want;

	encode(blocks, quant, &bytes, &size);
	for (unsigned by = 1; by <= IDCT_SIDE; by *= 2) {
		CHECK(planes_reduced(bytes, size, by, &want));
		check_blocks(blocks, quant, IDCT_SIDE / by, &want.plane[0]);
		planes_free(&want);
	}
	free(bytes);
}

/* Also where 16 bits do not hold products or sums. */
static void samples_are_those_of_libjpeg(void)
{
	static const int32_t largest[] = { 3, 60, 500, 1000 };
	struct rng rng = { .key = 2 };

	for (int i = 0; i < 600; i++) {
		struct block blocks[BLOCKS];
		int16_t quant[IDCT_SIZE];

		for (int k = 0; k < BLOCKS; k++)
			blocks[k] = random_block(
				&rng, largest[i % (int)ARRAY_LEN(largest)],
				1 + (unsigned)k % 20, k % 4 ? 8 : 1);
		for (int k = 0; k < IDCT_SIZE; k++)
			quant[k] = (int16_t)(1 + rng_next(&rng) %
							 (i % 3 ? 255 : 8));
		check_libjpeg(blocks, quant);
	}
}

int main(void)
{
	make_natural();
	every_coefficient_has_its_place();
	vectors_give_what_the_plain_version_gives();
	a_dc_coefficient_alone_is_flat();
	reduced_samples_are_means();
	samples_are_those_of_libjpeg();
	return 0;
}

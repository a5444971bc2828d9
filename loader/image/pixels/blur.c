/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/blur.h"

#include <string.h>

#include "loader/image/pixels/edge.h"
#include "loader/util/exact_math.h"

/* The greatest weight that 16 bits hold; 2^15 would be all. */
enum { ONE = 1 << 15, WEIGHT_MAX = ONE - 1 };

void blur_init(struct blur *blur, unsigned size, double sigma)
{
	double of[BLUR_SIZE_MAX], sum = 0;
	int half = (int)size / 2, rest = ONE;

	blur->size = size;
	for (int i = -half; i <= half; i++) {
		double x = i / sigma;

		of[i + half] = exact_exp(-0.5 * x * x);
		sum += of[i + half];
	}
	for (unsigned k = 0; k < size; k++) {
		blur->weights[k] =
			(int16_t)exact_round(of[k] / sum * WEIGHT_MAX);
		rest -= blur->weights[k];
	}
	rest += blur->weights[half];
	blur->weights[half] = (int16_t)(rest < WEIGHT_MAX ? rest : WEIGHT_MAX);
}

/* A row of sums with what lies beside it, and a vector beyond. */
static size_t padded(unsigned size, uint32_t width)
{
	return IMAGE_CHANNELS * (width + (size_t)size - 1) + BLUR_VECTOR;
}

uint64_t blur_scratch(unsigned size, uint32_t width)
{
	return padded(size, width) * sizeof(int16_t);
}

/* Copies to both sides of the row what mirroring puts there. */
static void surround(int16_t *row, uint32_t width, uint32_t half)
{
	int16_t *first = row + IMAGE_CHANNELS * (size_t)half;

	for (int64_t x = -(int64_t)half; x < (int64_t)width + half; x++) {
		if (x == 0)
			x = width;
		memcpy(first + IMAGE_CHANNELS * x,
		       first + IMAGE_CHANNELS * (size_t)edge_pixel(EDGE_REFLECT,
								   x, width),
		       IMAGE_CHANNELS * sizeof(*row));
	}
}

void blur_image(const struct blur *blur, const struct image *in,
		const struct image *out, void *scratch)
{
	const struct blur_loops *loops = ISA_BEST(blur_loops);
	const uint8_t *rows[BLUR_SIZE_MAX];
	uint32_t half = blur->size / 2;
	size_t count = IMAGE_CHANNELS * (size_t)in->width;
	int16_t *sums = scratch;

	memset(scratch, 0, blur_scratch(blur->size, in->width));
	for (uint32_t y = 0; y < in->height; y++) {
		for (unsigned k = 0; k < blur->size; k++)
			rows[k] = in->pixels + edge_pixel(EDGE_REFLECT,
							  (int64_t)y + k - half,
							  in->height) *
						       in->stride;
		loops->down(blur, rows, count,
			    sums + IMAGE_CHANNELS * (size_t)half);
		surround(sums, in->width, half);
		loops->across(blur, sums, count, out->pixels + y * out->stride);
	}
}

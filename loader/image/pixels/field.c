/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/field.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/pixels/blur_loops.h"
#include "loader/image/pixels/edge.h"
#include "loader/util/exact_math.h"

/* A larger image than 8192 x 8192 would need gigabytes. */
static const uint64_t PIXELS_MAX = 1 << 26;

/* torchvision's: 8 sigma + 1, and odd. */
static unsigned size_of(const struct displacement_field *field)
{
	return (unsigned)(8 * field->sigma + 1) | 1;
}

static uint64_t longest(const struct displacement_field *field, uint32_t width,
			uint32_t height)
{
	return max_u64(width, height) + size_of(field) + BLUR_VECTOR;
}

uint64_t field_scratch(const struct displacement_field *field, uint32_t width,
		       uint32_t height)
{
	uint64_t pixels = (uint64_t)width * height;

	if (pixels > PIXELS_MAX)
		return UINT64_MAX;
	return (2 * pixels + longest(field, width, height) * BLUR_COLUMNS) *
	       sizeof(float);
}

static void weigh(const struct displacement_field *field,
		  float weights[FIELD_SIZE_MAX])
{
	unsigned size = size_of(field);
	double of[FIELD_SIZE_MAX], sum = 0;

	for (unsigned k = 0; k < size; k++) {
		double x = ((double)k - size / 2) / field->sigma;

		of[k] = exact_exp(-0.5 * x * x);
		sum += of[k];
	}
	for (unsigned k = 0; k < size; k++)
		weights[k] = (float)(of[k] / sum);
}

static void draw(const struct displacement_field *field, size_t count,
		 float *dx, float *dy)
{
	struct rng rng = { .key = field->key };

	for (size_t i = 0; i < count; i++) {
		uint64_t n = rng_next(&rng);

		dx[i] = (float)(n >> 40) * 0x1p-23F - 1;
		dy[i] = (float)(n >> 16 & 0xffffff) * 0x1p-23F - 1;
	}
}

/* The values of a line are `step` apart; `columns` lines lie side by side. */
struct lines {
	float *first;
	size_t step;
	uint32_t length;
	size_t columns;
};

static void blur_lines(const struct lines *l, const float *weights,
		       unsigned size, float *copy)
{
	const struct blur_loops *loops = ISA_BEST(blur_loops);
	int64_t half = size / 2;

	for (int64_t i = -half; i < (int64_t)l->length + half; i++) {
		const float *from =
			l->first +
			edge_pixel(EDGE_REFLECT, i, l->length) * l->step;
		float *to = copy + (size_t)(i + half) * l->columns;

		for (size_t c = 0; c < l->columns; c++)
			to[c] = from[c];
	}
	for (uint32_t i = 0; i < l->length; i++)
		loops->reals(weights, size, copy + i * l->columns, l->columns,
			     l->columns, l->first + i * l->step);
}

static void blur_row(float *row, uint32_t width, const float *weights,
		     unsigned size, float *copy)
{
	const struct blur_loops *loops = ISA_BEST(blur_loops);
	int64_t half = size / 2;

	for (int64_t i = -half; i < (int64_t)width + half; i++)
		copy[i + half] = row[edge_pixel(EDGE_REFLECT, i, width)];
	loops->reals(weights, size, copy, 1, width, row);
}

static void blur_field(float *values, uint32_t width, uint32_t height,
		       const float *weights, unsigned size, float *copy)
{
	for (uint32_t x = 0; x < width; x += BLUR_COLUMNS) {
		const struct lines l = {
			.first = values + x,
			.step = width,
			.length = height,
			.columns = min_u64(width - x, BLUR_COLUMNS),
		};

		blur_lines(&l, weights, size, copy);
	}
	for (uint32_t y = 0; y < height; y++)
		blur_row(values + y * (size_t)width, width, weights, size,
			 copy);
}

void field_fill(const struct displacement_field *field, uint32_t width,
		uint32_t height, void *scratch, const float *out[2])
{
	size_t pixels = (size_t)width * height;
	float *values[2] = { scratch, (float *)scratch + pixels };
	float weights[FIELD_SIZE_MAX];

	weigh(field, weights);
	draw(field, pixels, values[0], values[1]);
	for (unsigned i = 0; i < 2; i++) {
		blur_field(values[i], width, height, weights, size_of(field),
			   values[1] + pixels);
		for (size_t k = 0; k < pixels; k++)
			values[i][k] *= field->scale[i];
		out[i] = values[i];
	}
}

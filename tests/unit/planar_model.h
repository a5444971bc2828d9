/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of planar.c in plain C, number by number. */
#ifndef TESTS_UNIT_PLANAR_MODEL_H
#define TESTS_UNIT_PLANAR_MODEL_H

#include "loader/image/resize/planar_class.h"

enum { ONE_BITS = FILTER_ONE_BITS };

static int32_t times(int32_t a, int32_t b)
{
	return (a * b + (1 << (ONE_BITS - 1))) >> ONE_BITS;
}

static int16_t limited(int32_t v)
{
	return (int16_t)(v > INT16_MAX ? INT16_MAX : v);
}

static int32_t weight_of(uint32_t weight)
{
	return (int32_t)(weight & 0xffff);
}

/* Pixel by pixel. */
static void pair(const struct shares *shares, uint32_t at, uint32_t taps,
		 int32_t *cells)
{
	size_t stride = shares->stride;

	memset(cells, 0, taps * stride * sizeof(*cells));
	for (uint32_t i = 0; i < shares->part.count; i++) {
		uint32_t low = at + shares->first[i];
		uint32_t first = (low + 1) / 2 - 1;

		for (uint32_t pixel = low; pixel < low + shares->n[i];
		     pixel++) {
			uint32_t near = pixel / 2, far = near - 1;
			int32_t share = shares->of[(pixel - low) * stride + i];

			if (pixel % 2)
				far = near + 1;
			if (near - first < taps)
				cells[(near - first) * stride + i] += 3 * share;
			if (far - first < taps)
				cells[(far - first) * stride + i] += share;
		}
	}
}

/* The weights of output i. */
static void weigh_one(const struct filter *f, uint32_t i, uint32_t *weights)
{
	uint64_t half = 1ull << (FILTER_SCALE_BITS - 1), sum = 0, scale;
	uint32_t left = FILTER_ONE, largest = 0;

	for (uint32_t k = 0; k < f->taps; k++)
		sum += (uint64_t)f->cells[k * f->stride + i];
	scale = (1ull << (FILTER_ONE_BITS + FILTER_SCALE_BITS)) / sum;
	for (uint32_t k = 0; k < f->taps; k++) {
		uint64_t share = (uint64_t)f->cells[k * f->stride + i];

		weights[k] =
			(uint32_t)((share * scale + half) >> FILTER_SCALE_BITS);
		left -= weights[k];
		if (weights[k] > weights[largest])
			largest = k;
	}
	weights[largest] += left;
	weights[largest] -= weights[largest] == FILTER_ONE;
	for (uint32_t k = 0; k < f->taps; k++)
		weights[k] |= weights[k] << 16;
}

static void weigh(struct filter *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		weigh_one(f, i, f->weights + (size_t)i * f->taps);
}

static void down(const struct planar_down *d)
{
	for (uint32_t x = 0; x < d->width; x++) {
		const uint8_t *p = d->samples + x;
		int32_t sum = 0;

		for (uint32_t k = 0; k < d->taps; k++, p += d->stride)
			sum += times(*p << PLANAR_POINT,
				     weight_of(d->weights[k]));
		d->out[x] = limited(sum);
	}
}

static void turn(const int16_t *in, size_t stride, uint32_t width,
		 planar_column *out)
{
	for (uint32_t y = 0; y < PLANAR_ROWS; y++, in += stride)
		for (uint32_t x = 0; x < width; x++)
			out[x][y] = in[x];
}

static void across(const struct filter *f, const planar_column *in,
		   planar_column *out)
{
	const uint32_t *w = f->weights;

	for (uint32_t i = 0; i < f->count; i++, w += f->taps) {
		const planar_column *p = in + f->first[i];

		for (uint32_t y = 0; y < PLANAR_ROWS; y++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < f->taps; k++)
				sum += times(p[k][y], weight_of(w[k]));
			out[i][y] = limited(sum);
		}
	}
}

static uint8_t byte_of(int32_t v)
{
	v = limited(v) >> PLANAR_POINT;
	return (uint8_t)(v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v);
}

static void color(const struct planar_colours *c)
{
	for (uint32_t y = 0; y < PLANAR_ROWS; y++)
		for (uint32_t x = 0; x < c->width; x++) {
			int32_t luma = limited(c->in[0][x][y] + c->rounding);
			int32_t cb = c->in[1][x][y] - PLANAR_ZERO_CHROMA;
			int32_t cr = c->in[2][x][y] - PLANAR_ZERO_CHROMA;
			size_t at = y * c->stride + x;

			c->out[0][at] = byte_of(luma + cr +
						times(cr, PLANAR_RED_OF_CR));
			c->out[1][at] =
				byte_of(luma + times(cb, PLANAR_GREEN_OF_CB) +
					times(cr, PLANAR_GREEN_OF_CR));
			c->out[2][at] = byte_of(luma + cb +
						times(cb, PLANAR_BLUE_OF_CB));
		}
}

static void gray(const struct planar_colours *c)
{
	for (uint32_t y = 0; y < PLANAR_ROWS; y++)
		for (uint32_t x = 0; x < c->width; x++)
			c->out[0][y * c->stride + x] =
				byte_of(limited(c->in[0][x][y] + c->rounding));
}

static const struct planar_class planar_model = {
	.filter = { .pair = pair, .weigh = weigh },
	.down = down,
	.turn = turn,
	.across = across,
	.color = color,
	.gray = gray,
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of rows.h in plain C, number by number. */
#ifndef TESTS_UNIT_ROWS_MODEL_H
#define TESTS_UNIT_ROWS_MODEL_H

#include <math.h>

#include "loader/image/resize/rows.h"

/* The input pixel of tap k of output x. */
static const uint8_t *model_pixel(const struct rows_across *a, uint32_t x,
				  uint32_t k)
{
	return a->in + ((size_t)a->x->first[x] + k) * 3;
}

static uint8_t model_nearest(float v)
{
	return (uint8_t)nearbyintf(v);
}

static void model_box_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++) {
		const union weight *w =
			a->x->weights + (size_t)(i / 3) * a->x->taps;
		float sum = model_pixel(a, i / 3, 0)[i % 3] * w[0].real;

		for (uint32_t k = 1; k < a->x->taps; k++)
			sum += model_pixel(a, i / 3, k)[i % 3] * w[k].real;
		a->out[i].real = sum;
	}
}

static void model_box_down(const struct rows_down *d)
{
	for (uint32_t i = 0; i < d->x->part.count * 3; i++) {
		float sum = d->rows[0][i].real * d->w[0].real;

		for (uint32_t k = 1; k < d->taps; k++)
			sum += d->rows[k][i].real * d->w[k].real;
		d->out[i] = model_nearest(sum);
	}
}

static void model_whole_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++) {
		a->out[i].fixed = 0;
		for (uint32_t k = 0; k < a->x->taps; k++)
			a->out[i].fixed += model_pixel(a, i / 3, k)[i % 3];
	}
}

/* 2 x 2 is a case of its own, rounded half up. */
static void model_whole_down(const struct rows_down *d)
{
	float inverse = 1.f / (float)(d->x->taps * d->taps);

	for (uint32_t i = 0; i < d->x->part.count * 3; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < d->taps; k++)
			sum += d->rows[k][i].fixed;
		d->out[i] = d->x->taps == 2 && d->taps == 2
				    ? (uint8_t)((sum + 2) >> 2)
				    : model_nearest((float)sum * inverse);
	}
}

static void model_linear_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++) {
		const union weight *w =
			a->x->weights + (size_t)(i / 3) * a->x->taps;

		a->out[i].fixed = 0;
		for (uint32_t k = 0; k < a->x->taps; k++)
			a->out[i].fixed +=
				model_pixel(a, i / 3, k)[i % 3] * w[k].fixed;
	}
}

/* OpenCV's order of shifts: each row loses its own low bits. */
static void model_linear_down(const struct rows_down *d)
{
	for (uint32_t i = 0; i < d->x->part.count * 3; i++) {
		int32_t sum = 2;

		for (uint32_t k = 0; k < d->taps; k++)
			sum += ((d->rows[k][i].fixed >> 4) * d->w[k].fixed) >>
			       16;
		d->out[i] = (uint8_t)(sum >> 2);
	}
}

/* A weight is the pair of numbers a + 128 b. */
static int32_t model_weight(union weight w)
{
	return (int16_t)w.fixed + 128 * (w.fixed >> 16);
}

static int32_t model_of_triangle(int32_t sum)
{
	return (sum + (1 << 21)) >> 22;
}

static void model_triangle_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++) {
		const union weight *w =
			a->x->weights + (size_t)(i / 3) * a->x->taps;
		int32_t sum = 0;

		for (uint32_t k = 0; k < a->x->taps; k++)
			sum += model_pixel(a, i / 3, k)[i % 3] *
			       model_weight(w[k]);
		a->out[i].fixed = model_of_triangle(sum);
	}
}

static void model_triangle_down(const struct rows_down *d)
{
	for (uint32_t i = 0; i < d->x->part.count * 3; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < d->taps; k++)
			sum += d->rows[k][i].fixed * model_weight(d->w[k]);
		d->out[i] = (uint8_t)model_of_triangle(sum);
	}
}

/* Filters with weights of any sign, and limits the results. */
static int32_t model_of_signed(int32_t sum)
{
	int32_t v = model_of_triangle(sum);

	return v < 0 ? 0 : v > 255 ? 255 : v;
}

static int32_t model_signed_weight(union weight w)
{
	return (int16_t)w.fixed + 256 * (w.fixed >> 16);
}

static void model_signed_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++) {
		const union weight *w =
			a->x->weights + (size_t)(i / 3) * a->x->taps;
		int32_t sum = 0;

		for (uint32_t k = 0; k < a->x->taps; k++)
			sum += model_pixel(a, i / 3, k)[i % 3] *
			       model_signed_weight(w[k]);
		a->out[i].fixed = model_of_signed(sum);
	}
}

static void model_signed_down(const struct rows_down *d)
{
	for (uint32_t i = 0; i < d->x->part.count * 3; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < d->taps; k++)
			sum += d->rows[k][i].fixed *
			       model_signed_weight(d->w[k]);
		d->out[i] = (uint8_t)model_of_signed(sum);
	}
}

static void model_nearest_across(const struct rows_across *a)
{
	for (uint32_t i = 0; i < a->x->part.count * 3; i++)
		a->out[i].fixed = model_pixel(a, i / 3, 0)[i % 3];
}

static void model_nearest_down(const struct rows_down *d)
{
	for (uint32_t i = 0; i < d->x->part.count * 3; i++)
		d->out[i] = (uint8_t)d->rows[0][i].fixed;
}

static const struct rows_table rows_model = { {
	[AXIS_BOX] = { .across = model_box_across, .down = model_box_down },
	[AXIS_WHOLE] = { .across = model_whole_across,
			 .down = model_whole_down },
	[AXIS_LINEAR] = { .across = model_linear_across,
			  .down = model_linear_down },
	[AXIS_TRIANGLE] = { .across = model_triangle_across,
			    .down = model_triangle_down },
	[AXIS_NEAREST] = { .across = model_nearest_across,
			   .down = model_nearest_down },
	[AXIS_CUBIC] = { .across = model_signed_across,
			 .down = model_signed_down },
	[AXIS_LANCZOS] = { .across = model_signed_across,
			   .down = model_signed_down },
} };

#endif

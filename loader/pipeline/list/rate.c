/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/rate.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "loader/util/exact_math.h"

static const double PI = 3.14159265358979312;

static uint32_t divisor_of(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* sin(pi t) is the sine of t / 2 turns. */
static double sinc(double t)
{
	return t == 0 ? 1 : exact_sine(t / 2) / (PI * t);
}

static double weight_of(double t, double width)
{
	double window;

	if (t <= -width || t >= width)
		return 0;
	window = exact_sine(t / (4 * width) + 0.25);
	return sinc(t) * window * window;
}

static void fill(struct rate *r, double base, double width)
{
	for (uint32_t p = 0; p < r->to; p++) {
		uint64_t at = (uint64_t)p * r->from / r->to;

		for (uint32_t k = 0; k < r->taps; k++) {
			double sample = (double)at + k - r->width;
			double t =
				base * ((double)p / r->to - sample / r->from);

			r->weights[(size_t)p * r->taps + k] =
				(float)(weight_of(t, width) * (base / r->from));
		}
	}
}

int rate_init(struct rate *rate, uint32_t from, uint32_t to, unsigned width,
	      double rolloff)
{
	uint32_t divisor = divisor_of(from, to);
	double base, reach;

	*rate = (struct rate){ .from = from / divisor, .to = to / divisor };
	base = rolloff * (rate->from < rate->to ? rate->from : rate->to);
	reach = width * (double)rate->from / base;
	if (reach * rate->to >= RATE_WEIGHTS_MAX / 2.0)
		return -E2BIG;
	rate->width = (uint32_t)reach + 1;
	rate->taps = 2 * rate->width + 1;
	if ((uint64_t)rate->taps * rate->to > RATE_WEIGHTS_MAX)
		return -E2BIG;
	rate->weights =
		calloc((size_t)rate->taps * rate->to, sizeof(*rate->weights));
	if (!rate->weights)
		return -ENOMEM;
	fill(rate, base, width);
	return 0;
}

void rate_fini(struct rate *rate)
{
	free(rate->weights);
	rate->weights = NULL;
}

uint64_t rate_samples(const struct rate *rate, uint64_t samples)
{
	uint64_t all;

	if (!mul_ok(samples, rate->to, &all) || all > UINT64_MAX - rate->from)
		return UINT64_MAX;
	return (all + rate->from - 1) / rate->from;
}

int64_t rate_place(const struct rate *rate, uint64_t n, const float **weights)
{
	uint64_t phase = n % rate->to;

	*weights = rate->weights + phase * rate->taps;
	return (int64_t)(n / rate->to * rate->from +
			 phase * rate->from / rate->to) -
	       rate->width;
}

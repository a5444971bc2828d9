/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resamples sound to another rate, by weighted sums of input samples. The
 * weights are those of torchaudio.functional.resample() in its default method:
 * with from and to without a common divisor, b = rolloff * min(from, to) and t
 * = b * (n / to - k / from) for sample k of the input and n of the output,
 *
 *   weight = b / from * sinc(t) * cos(pi t / (2 width))^2    for |t| < width
 *
 * in double, then rounded to float32. There are ceil(to * samples / from) of
 * the output, and zeros outside the input.
 */
#ifndef LOADER_PIPELINE_LIST_RATE_H
#define LOADER_PIPELINE_LIST_RATE_H

#include <stdint.h>

enum { RATE_WEIGHTS_MAX = 1 << 20 };

struct rate {
	uint32_t from; /* without a common divisor */
	uint32_t to;
	uint32_t taps;	/* input samples for each output sample */
	uint32_t width; /* the first of them is so many before its place */
	float *weights; /* [to][taps] */
};

/* -E2BIG: more than RATE_WEIGHTS_MAX weights. -ENOMEM. */
int rate_init(struct rate *rate, uint32_t from, uint32_t to, unsigned width,
	      double rolloff);
void rate_fini(struct rate *rate);

/* Returns the number of output samples, or UINT64_MAX on overflow. */
uint64_t rate_samples(const struct rate *rate, uint64_t samples);

/* Returns the first input sample for output sample n, which can be before the
   input, and its weights. */
int64_t rate_place(const struct rate *rate, uint64_t n, const float **weights);

#endif

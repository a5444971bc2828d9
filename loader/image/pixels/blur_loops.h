/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of blur.c, compiled once per instruction set. */
#ifndef LOADER_IMAGE_PIXELS_BLUR_LOOPS_H
#define LOADER_IMAGE_PIXELS_BLUR_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/util/isa_choice.h"

enum { BLUR_SIZE_MAX = 255 };

/* The weights of pixels in a row, in 2^-15; equal about the middle. */
struct blur {
	unsigned size; /* odd, at most BLUR_SIZE_MAX */
	int16_t weights[BLUR_SIZE_MAX];
};

enum {
	BLUR_POINT = 7,
	BLUR_VECTOR = 16, /* the longest vector of numbers */
	/* Columns that are filtered side by side in floating point. */
	BLUR_COLUMNS = 32,
};

struct blur_loops {
	/* `count` sums over columns of blur->size rows, in 2^-7. */
	void (*down)(const struct blur *blur, const uint8_t *const *rows,
		     size_t count, int16_t *out);
	/* `count` bytes; in: the first value of the first sum. Reads up to
	   BLUR_VECTOR values beyond the last. */
	void (*across)(const struct blur *blur, const int16_t *in, size_t count,
		       uint8_t *out);
	/* `count` sums of `size` products each; value k of sum i is
	   in[i + k * step]. */
	void (*reals)(const float *weights, unsigned size, const float *in,
		      size_t step, size_t count, float *out);
};

ISA_DECLARE(struct blur_loops, blur_loops);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of planar.c. They compute sixteen rows of the result at a
 * time, in 16-bit numbers with 7 bits after the binary point.
 */
#ifndef LOADER_IMAGE_RESIZE_PLANAR_CLASS_H
#define LOADER_IMAGE_RESIZE_PLANAR_CLASS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/image/resize/filter.h"
#include "loader/util/isa_choice.h"

enum {
	PLANAR_ROWS = 16,
	PLANAR_COLUMNS = 32, /* that color() and gray() turn at a time */
	PLANAR_POINT = 7,
	PLANAR_ZERO_CHROMA = 128 << PLANAR_POINT,
	/* JFIF's coefficients times 2^15. Coefficients above 1 are stored less
	   1. */
	PLANAR_RED_OF_CR = 13173,
	PLANAR_GREEN_OF_CB = -11277,
	PLANAR_GREEN_OF_CR = -23401,
	PLANAR_BLUE_OF_CB = 25297,
};

/* Sixteen rows of one column. */
typedef int16_t planar_column[PLANAR_ROWS];

/* A row of the result in one component. */
struct planar_down {
	const uint8_t *samples; /* of the first tap; up to 15 more are read */
	size_t stride;
	const uint32_t *weights; /* [taps] */
	uint32_t taps;
	uint32_t width;
	int16_t *out; /* width, rounded up to a multiple of 16 */
};

/* Planes of bytes, whole columns of PLANAR_ROWS rows `stride` apart. */
struct planar_colours {
	const planar_column *in[3]; /* Y, Cb, Cr */
	uint32_t width; /* rounded up to PLANAR_COLUMNS for reads and writes */
	int16_t rounding; /* added to Y */
	uint8_t *out[3];  /* R, G, B */
	size_t stride;
};

struct planar_class {
	struct filter_class filter;
	void (*down)(const struct planar_down *d);
	/* PLANAR_ROWS rows `stride` apart become `width` columns. */
	void (*turn)(const int16_t *in, size_t stride, uint32_t width,
		     planar_column *out);
	void (*across)(const struct filter *x, const planar_column *in,
		       planar_column *out);
	void (*color)(const struct planar_colours *c);
	void (*gray)(const struct planar_colours *c);
};

ISA_DECLARE(struct planar_class, planar);

#endif

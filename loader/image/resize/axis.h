/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one axis of an image is resampled: output i is the sum over k < taps of
 * weight[i * taps + k] * input[origin + first[i] + k]. All outputs have the
 * same number of taps, all inside the input. A tap that an output does not need
 * has the weight 0.
 *
 * An axis may cover a part of the outputs. It then needs a part of the inputs
 * only, from `origin` on.
 */
#ifndef LOADER_IMAGE_RESIZE_AXIS_H
#define LOADER_IMAGE_RESIZE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/util/scratch.h"

enum axis_kind {
	AXIS_NONE,	  /* not built yet */
	AXIS_BOX,	  /* float: OpenCV's INTER_AREA, shrinking */
	AXIS_WHOLE,	  /* no weights: from is a multiple of to */
	AXIS_LINEAR,	  /* int, 1 is 2^11: INTER_AREA, enlarging */
	AXIS_TRIANGLE,	  /* int, 1 is 2^22: Pillow's BILINEAR */
	AXIS_NEAREST,	  /* no weights: Pillow's NEAREST */
	AXIS_CUBIC,	  /* int, 1 is 2^22: Pillow's BICUBIC */
	AXIS_LANCZOS,	  /* the same: Pillow's LANCZOS */
	AXIS_LINEAR_REAL, /* as those above in float, for grids */
	AXIS_TRIANGLE_REAL,
	AXIS_CUBIC_REAL,
	AXIS_LANCZOS_REAL,
};

enum {
	AXIS_IMAGES = AXIS_LANCZOS + 1, /* kinds below it are for images */
	AXIS_ONE_BITS = 22,
};

union weight {
	float real;
	int32_t fixed;
};

/* A part of resizing `from` to `to`: outputs [begin, begin + count). */
struct axis_part {
	uint32_t from;
	uint32_t to;
	uint32_t begin;
	uint32_t count;
	bool mirror; /* from the last to the first */
};

/* The inputs of one output. */
struct axis_span {
	uint32_t first;
	uint32_t n;
};

struct axis_class;

struct axis {
	enum axis_kind kind;
	const struct axis_class *class;
	struct axis_part part;
	uint32_t origin; /* the first needed input */
	uint32_t span;	 /* number of needed inputs */
	uint32_t taps;
	double scale;		 /* input by output */
	double inverse;		 /* to / from */
	struct axis_span *spans; /* [part.count], as the kind has them */
	uint32_t *first;	 /* [part.count] */
	union weight *weights;	 /* [part.count * taps]; see axis_weight() */
	bool is_blend; /* AXIS_TRIANGLE, not shrinking, of two taps, which are
			  1 together */
	struct scratch memory[2];
};

/* OpenCV's scale, which need not be the double nearest to from / to. */
double axis_scale(uint32_t from, uint32_t to);

/*
 * Builds an axis of `kind` from a zeroed or used one; does nothing if it is
 * that axis already. -ENOMEM
 */
int axis_build(struct axis *axis, enum axis_kind kind,
	       const struct axis_part *part);
void axis_fini(struct axis *axis);

/*
 * A weight as a whole number, of a kind in ints. Where 1 is 2^22 it is stored
 * as two signed 16-bit numbers, a in the lower half: a + 128 b of a triangle,
 * which needs no less than 0 and no more than 1, and a + 256 b of the others.
 */
int32_t axis_weight(const struct axis *axis, union weight weight);
/* Converts the weight of a pair for dot(), whose upper half counts in
   `unit`. */
static inline int32_t axis_pair(union weight weight, int32_t unit)
{
	return (int16_t)weight.fixed + unit * (weight.fixed >> 16);
}

#endif

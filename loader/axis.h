/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one axis of an image is resampled: output i is the sum over k < taps of
 * weight[i * taps + k] * input[first[i] + k]. All outputs have equally many
 * taps, all inside the input; what a kind does not need has the weight 0, which
 * changes no sum.
 */
#ifndef LOADER_AXIS_H
#define LOADER_AXIS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/scratch.h"

enum axis_kind {
	AXIS_NONE,     /* nothing built yet */
	AXIS_BOX,      /* float: OpenCV's INTER_AREA, shrinking */
	AXIS_WHOLE,    /* no weights: from is a multiple of to */
	AXIS_LINEAR,   /* int, 1 is 2^11: INTER_AREA, enlarging */
	AXIS_TRIANGLE, /* int, 1 is 2^22: Pillow's BILINEAR */
};

union weight {
	float real;
	int32_t fixed;
};

struct axis {
	enum axis_kind kind;
	uint32_t from;
	uint32_t to;
	uint32_t taps;
	uint32_t *first;       /* [to] */
	union weight *weights; /* [to * taps]; not for AXIS_WHOLE */
	struct scratch memory[2];
};

/* OpenCV's scale, which need not be the double nearest to from / to. */
double axis_scale(uint32_t from, uint32_t to);

/* Makes a zeroed or used axis one of `kind`; what is the same stays. -ENOMEM */
int axis_build(struct axis *axis, enum axis_kind kind, uint32_t from,
	       uint32_t to);
void axis_fini(struct axis *axis);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of one axis of a resize in whole numbers, for one component of a
 * JPEG: output i is the sum over k < taps of weight[i * taps + k] / 2^15 times
 * sample first[i] + k. Upsampling as libjpeg's fancy one is contained in them,
 * so components with half the samples need no other treatment. What they are,
 * to the bit, is in beton-transforms(7).
 *
 * An axis is measured in pixels of the image. What is filtered may be a reduced
 * image, whose pixels are larger: where they lie is a grid, and an axis need
 * not begin or end where one of them does.
 */
#ifndef LOADER_RESIZE_FILTER_H
#define LOADER_RESIZE_FILTER_H

#include "loader/resize/axis.h"
#include "loader/resize/resample.h"
#include "loader/util/scratch.h"

enum {
	/* Source pixels of an output; beyond, errors of rounding add up. */
	FILTER_PIXELS_MAX = 64,
};

enum filter_kind {
	FILTER_AREA,
	FILTER_LINEAR,
	FILTER_TRIANGLE,
};

/* Pixels of what is filtered, of which the first may begin before the axis. */
struct filter_grid {
	uint32_t pixel;	 /* of so many pixels of the image: 1, 2, 4 or 8 */
	uint32_t before; /* of the first, those that are not the axis' */
};

/*
 * What outputs are made of in pixels of the grid, whatever the component:
 * output i of pixels first[i] + k, k < n[i], each by of[i * most + k] / sum of
 * these.
 */
struct shares {
	enum filter_kind kind;
	struct axis_part part;
	struct filter_grid grid;
	uint32_t pixels; /* of the grid, that have any of the axis */
	uint32_t most;
	uint32_t *first; /* [part.count] */
	uint32_t *n;	 /* [part.count] */
	uint32_t *of;	 /* [part.count * most] */
	struct scratch memory[2];
};

/* Where the samples of an axis are. */
struct filter_source {
	uint32_t at;	  /* the pixel that is the axis' first, */
	bool mirror;	  /* or, running down, its last */
	uint32_t across;  /* pixels that a sample covers: 1 or 2 */
	uint32_t samples; /* of the whole component */
	bool smooth;	  /* the samples' triangle, not repetition */
	uint32_t begin;	  /* the first that is there */
};

struct filter {
	uint32_t count;
	uint32_t taps;
	uint32_t origin;   /* first[] and taps are within */
	uint32_t span;	   /* [origin, origin + span) */
	uint32_t *first;   /* [count], of source.begin + origin */
	uint32_t *weights; /* [count * taps], twice in each: v << 16 | v */
	struct scratch memory[2];
};

/*
 * Of both axes, of pixels of a grid; false: a side shrinks too much for whole
 * numbers. Larger pixels than one are for sides that do not grow.
 */
bool filter_kind(const struct resize *resize, uint32_t pixel,
		 enum filter_kind *out);

/* How many pixels of the grid have any of an axis of so many. */
uint32_t filter_pixels(uint32_t from, const struct filter_grid *grid);

/* Pixels [*first, *first + *n) of the grid are what its outputs need. */
void filter_needs(enum filter_kind kind, const struct axis_part *part,
		  const struct filter_grid *grid, uint32_t *first, uint32_t *n);

/* Makes zeroed or used shares others; what is the same stays. -ENOMEM */
int shares_build(struct shares *shares, enum filter_kind kind,
		 const struct axis_part *part, const struct filter_grid *grid);
void shares_fini(struct shares *shares);

/* Makes a zeroed or used filter another one. -ENOMEM */
int filter_build(struct filter *filter, const struct shares *shares,
		 const struct filter_source *source);
void filter_fini(struct filter *filter);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of one axis of a resize in whole numbers, for one component of a
 * JPEG. Output i is the sum over k < taps of weight[i * taps + k] / 2^15 times
 * sample first[i] + k. The weights include libjpeg's fancy upsampling, so
 * components with half the samples need no other treatment. beton-resize(7)
 * defines them to the bit.
 *
 * An axis is measured in pixels of the image. The samples may be those of a
 * reduced image, whose pixels are larger. A grid stores their positions; an
 * axis need not begin or end at the edge of one.
 */
#ifndef LOADER_RESIZE_FILTER_H
#define LOADER_RESIZE_FILTER_H

#include "loader/resize/axis.h"
#include "loader/resize/resample.h"
#include "loader/util/scratch.h"

enum {
	/* Most source pixels of an output: with more, rounding errors add
	   up. */
	FILTER_PIXELS_MAX = 64,
};

enum filter_kind {
	FILTER_AREA,
	FILTER_LINEAR,
	FILTER_TRIANGLE,
};

/* The pixels of the filtered image. The first one may begin before the axis. */
struct filter_grid {
	uint32_t pixel;	 /* size in pixels of the image: 1, 2, 4 or 8 */
	uint32_t before; /* pixels of the image in the first before the axis */
};

/*
 * The shares of an axis in pixels of the grid, for any component. Output i has
 * the pixels first[i] + k, k < n[i]; each counts of[i * most + k] / the sum of
 * all of them.
 */
struct shares {
	enum filter_kind kind;
	struct axis_part part;
	struct filter_grid grid;
	uint32_t pixels; /* pixels of the grid that touch the axis */
	uint32_t most;
	uint32_t *first; /* [part.count] */
	uint32_t *n;	 /* [part.count] */
	uint32_t *of;	 /* [part.count * most] */
	struct scratch memory[2];
};

/* Where the samples of an axis are. */
struct filter_source {
	uint32_t at;	  /* pixel of the axis' first, */
	bool mirror;	  /* or with a mirror its last */
	uint32_t across;  /* pixels that a sample covers: 1 or 2 */
	uint32_t samples; /* of the whole component */
	bool smooth;	  /* interpolated, not repeated */
	uint32_t begin;	  /* first sample in memory */
};

struct filter {
	uint32_t count;
	uint32_t taps;
	uint32_t origin;   /* all taps are within */
	uint32_t span;	   /* [origin, origin + span) */
	uint32_t *first;   /* [count], of source.begin + origin */
	uint32_t *weights; /* [count * taps], twice in each: v << 16 | v */
	struct scratch memory[2];
};

/*
 * The kind of filter of both axes, for pixels of a grid. False: there is none,
 * or a side shrinks too much for whole numbers. Pixels larger than 1 require
 * that no side grows.
 */
bool filter_kind(const struct resize *resize, uint32_t pixel,
		 enum filter_kind *out);

/* Pixels of the grid that touch an axis of `from` pixels. */
uint32_t filter_pixels(uint32_t from, const struct filter_grid *grid);

/* Finds the pixels [*first, *first + *n) of the grid that the outputs need. */
void filter_needs(enum filter_kind kind, const struct axis_part *part,
		  const struct filter_grid *grid, uint32_t *first, uint32_t *n);

/*
 * Builds shares from zeroed or used ones; does nothing if they are those
 * already. -ENOMEM
 */
int shares_build(struct shares *shares, enum filter_kind kind,
		 const struct axis_part *part, const struct filter_grid *grid);
void shares_fini(struct shares *shares);

/* Builds a filter from a zeroed or used one. -ENOMEM */
int filter_build(struct filter *filter, const struct shares *shares,
		 const struct filter_source *source);
void filter_fini(struct filter *filter);

#endif

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
#ifndef LOADER_IMAGE_RESIZE_FILTER_H
#define LOADER_IMAGE_RESIZE_FILTER_H

#include "loader/image/resize/axis.h"
#include "loader/image/resize/resample.h"
#include "loader/util/scratch.h"

enum {
	/* Most source pixels of an output: with more, rounding errors add
	   up. */
	FILTER_PIXELS_MAX = 64,
	/* Most samples of an output: those of its pixels, and a neighbor on
	   each side. */
	FILTER_TAPS_MAX = FILTER_PIXELS_MAX + 2,
	FILTER_ONE_BITS = 15,
	FILTER_ONE = 1 << FILTER_ONE_BITS,
	/* Bits of the reciprocal that shares are multiplied by. */
	FILTER_SCALE_BITS = 32,
	/* Weights of libjpeg's upsampling, for the nearer and the farther
	   sample. */
	FILTER_NEAR = 3,
	FILTER_FAR = 1,
	FILTER_LANES = 8, /* outputs are padded to a multiple */
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
 * the pixels first[i] + k, k < n[i]; each counts of[k * stride + i] / the sum of
 * all of them. All other numbers are 0, also in some rows before k = 0 and after
 * k = most - 1, and in columns up to the stride.
 */
struct shares {
	enum filter_kind kind;
	struct axis_part part;
	struct filter_grid grid;
	uint32_t pixels; /* pixels of the grid that touch the axis */
	uint32_t most;
	size_t stride;
	uint32_t *first; /* [stride] */
	uint32_t *n;	 /* [stride] */
	int32_t *of;
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
	/* Shares of the samples: what the weights are made of. Tap k of output
	   i is cells[k * stride + i]. */
	int32_t *cells;
	size_t stride;
	struct scratch memory[3];
};

/*
 * Computes the weights from the cells. An output has sum S of its cells; a cell
 * c has the weight c * (2^47 / S, rounded down) / 2^32, rounded to the nearest.
 * The first of the largest weights gets the rest of 2^15. A weight of 2^15, which
 * is no signed 16-bit number, is stored as 2^15 - 1. No product has more than 47
 * bits, so float64 is exact. `weights` has room for `stride` outputs.
 */
typedef void filter_weigh_fn(struct filter *f);

/*
 * Computes cells of samples that cover two pixels each. The cell of sample s is
 * three times the shares at pixels 2 s and 2 s + 1, plus those at 2 s - 1 and
 * 2 s + 2. The first pixel of output i is `at` + first[i]; its first cell is the
 * first sample that gets a share.
 */
typedef void filter_pair_fn(const struct shares *shares, uint32_t at,
			    uint32_t taps, int32_t *cells);

struct filter_class {
	filter_pair_fn *pair;
	filter_weigh_fn *weigh;
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
		 const struct filter_source *source,
		 const struct filter_class *class);
void filter_fini(struct filter *filter);

#endif

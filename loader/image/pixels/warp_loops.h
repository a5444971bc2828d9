/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of warp.c, compiled once per instruction set. */
#ifndef LOADER_IMAGE_PIXELS_WARP_LOOPS_H
#define LOADER_IMAGE_PIXELS_WARP_LOOPS_H

#include "loader/image/pixels/place.h"
#include "loader/util/image.h"
#include "loader/util/isa_choice.h"

/* Pixels [from, to) of a row of the result, all of them inside the image. The
   place of pixel k is (x + k * step_x, y + k * step_y), in 2^-16 pixels. */
struct warp_row {
	const struct image *in;
	uint8_t *out; /* pixel 0 of the row */
	int64_t from;
	int64_t to;
	int64_t x;
	int64_t y;
	int64_t step_x;
	int64_t step_y;
};

/* A part of a row of a map that divides. */
struct warp_division {
	double x; /* of the numerators at the first place's center, */
	double y;
	double d; /* and of the denominator */
	double step[3];
	double width; /* of the image */
	double height;
};

/* Places away from their pixels, the first of which is (x, y). */
struct warp_moves {
	const float *dx;
	const float *dy;
	uint32_t x;
	uint32_t y;
	double width; /* of the image */
	double height;
};

struct warp_loops {
	/* By enum warp_how. */
	void (*row[2])(const struct warp_row *r);
	void (*sample[2])(const struct warp_places *at, size_t count,
			  const struct image *in, const uint8_t *fill,
			  uint8_t *out);
	/* The places of all WARP_PLACES. */
	void (*divide)(const struct warp_division *d, struct warp_places *at);
	void (*move)(const struct warp_moves *m, size_t count,
		     struct warp_places *at);
};

ISA_DECLARE(struct warp_loops, warp_loops);

#endif

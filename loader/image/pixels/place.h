/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of an image in 2^-16 pixels, from the top left corner of its top left
 * pixel, whose center is at (2^15, 2^15).
 */
#ifndef LOADER_IMAGE_PIXELS_PLACE_H
#define LOADER_IMAGE_PIXELS_PLACE_H

#include <stddef.h>
#include <stdint.h>

enum {
	WARP_BITS = 16,
	WARP_ONE = 1 << WARP_BITS,
	WARP_WEIGHT_BITS = 11,
	WARP_WEIGHTS = 1 << WARP_WEIGHT_BITS,
};

enum { WARP_PLACES = 64, WARP_OUTSIDE = -1 };

/* The places of some neighbors of a row, of an image of sides below 2^15. */
struct warp_places {
	int32_t x[WARP_PLACES]; /* WARP_OUTSIDE: the fill color */
	int32_t y[WARP_PLACES];
};

/* The two pixels about a place along one side, and the weight of the second of
   WARP_WEIGHTS. */
struct warp_about {
	size_t first;
	size_t second;
	int32_t weight;
};

static inline struct warp_about warp_about(int64_t place, uint32_t size)
{
	int64_t at = place - WARP_ONE / 2, i = at >> WARP_BITS;

	return (struct warp_about){
		.first = (size_t)(i < 0 ? 0 : i),
		.second = (size_t)(i + 1 < size ? i + 1 : i),
		.weight = (int32_t)((at & (WARP_ONE - 1)) >>
				    (WARP_BITS - WARP_WEIGHT_BITS)),
	};
}

#endif

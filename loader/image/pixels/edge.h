/* SPDX-License-Identifier: Apache-2.0 */
/* Values for positions beyond the ends of a row or a column. */
#ifndef LOADER_IMAGE_PIXELS_EDGE_H
#define LOADER_IMAGE_PIXELS_EDGE_H

#include <stdint.h>

enum edge {
	EDGE_NEAREST,	/* the outermost pixel */
	EDGE_REFLECT,	/* mirrored about the outermost pixel */
	EDGE_SYMMETRIC, /* mirrored with the outermost pixel */
};

/* The pixel of a side of `size` that the place `at` repeats. */
static inline uint32_t edge_pixel(enum edge edge, int64_t at, uint32_t size)
{
	int64_t last = (int64_t)size - 1;
	int64_t period = 2 * (last + (edge == EDGE_SYMMETRIC));

	if (at >= 0 && at <= last)
		return (uint32_t)at;
	if (edge == EDGE_NEAREST || !period)
		return at < 0 ? 0 : size - 1;
	at = (at % period + period) % period;
	if (at <= last)
		return (uint32_t)at;
	return (uint32_t)(period - at - (edge == EDGE_SYMMETRIC));
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels in memory, and rectangles of them. */
#ifndef LOADER_UTIL_IMAGE_H
#define LOADER_UTIL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_CHANNELS = 3 };

/* 8-bit RGB, interleaved, rows from the top `stride` bytes apart; the pixels
   are not owned. */
struct image {
	uint8_t *pixels;
	uint32_t width;
	uint32_t height;
	size_t stride;
};

/* Pixels [x, x + width) of rows [y, y + height). */
struct rect {
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

/* Narrows a view to a part of it; `mirror`: the view's left and right are
   exchanged. */
static inline void rect_narrow(struct rect *view, bool mirror,
			       const struct rect *part)
{
	view->x += mirror ? view->width - part->x - part->width : part->x;
	view->y += part->y;
	view->width = part->width;
	view->height = part->height;
}

/* Rows of pixels of an image, as geometry produces them; not owned. */
struct band {
	const uint8_t *channel[IMAGE_CHANNELS]; /* the first R, G and B */
	size_t step;   /* to the next pixel: 3, or 1 if each has a plane */
	size_t stride; /* to the next row */
	uint32_t y;    /* number of the first row in the image */
	uint32_t rows;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels in memory, and places in them. */
#ifndef LOADER_IMAGE_H
#define LOADER_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* 8-bit RGB, interleaved, rows from the top `stride` bytes apart; borrowed. */
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

#endif

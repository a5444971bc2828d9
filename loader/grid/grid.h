/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grid: numbers in rows and columns, of any number of channels, type and
 * frames, as arrays, masks and deep images are. The other family of images is
 * struct image, 8-bit RGB, which JPEGs become.
 *
 * Values of a row follow one another, channel by channel and pixel by pixel.
 * Nothing is aligned.
 */
#ifndef LOADER_GRID_GRID_H
#define LOADER_GRID_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/graph/op.h"

struct grid {
	uint8_t *values; /* of the first pixel; not owned */
	enum dtype dtype;
	bool mask;	/* values are classes */
	uint32_t width; /* none of them is 0 */
	uint32_t height;
	uint32_t channels;
	uint32_t frames;
	size_t stride; /* bytes from a row to the next */
	size_t frame;  /* bytes from a frame to the next */
};

/* A grid of the shape and numbers of a type, without memory. */
struct grid grid_of_type(const struct type *type);

/* Sets rows and frames without gaps. Returns the bytes; UINT64_MAX: too many.
 */
uint64_t grid_pack(struct grid *g);

/* Bytes of a pixel, and of a row without its gap. */
size_t grid_pixel_size(const struct grid *g);
size_t grid_row_size(const struct grid *g);

static inline uint8_t *grid_row(const struct grid *g, uint32_t frame,
				uint32_t y)
{
	return g->values + frame * g->frame + y * g->stride;
}

/* Narrows the grid to a part; no value moves. */
void grid_crop(struct grid *g, const struct rect *part);

/*
 * Sets a part of all frames to `fill`, one number or one for each channel; of a
 * mask to the class `label`, which may be NULL for an operation that masks do
 * without.
 */
void grid_fill(const struct grid *g, const struct rect *part,
	       const struct arg *fill, const struct arg *label);

/* Copies `in`, mirrored or not, to `out` of the same shape and numbers. */
void grid_copy(const struct grid *in, bool mirror, const struct grid *out);

/* Converts `in` to the numbers of `out`, which has the same shape. */
void grid_convert(const struct grid *in, const struct grid *out);

/* Writes a grid to a tensor, mirrored or not. `chw`: channels before rows. */
void grid_store(const struct grid *in, bool mirror, bool chw, void *out);

#endif

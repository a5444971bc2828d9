/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grid: numbers of any type in rows and columns, with any number of channels
 * and frames, for example arrays, masks and 16-bit images. 8-bit RGB images,
 * such as decoded JPEGs, use struct image instead.
 *
 * A row contains its pixels in order, and a pixel its channels, without gaps.
 * Values are unaligned.
 */
#ifndef LOADER_PIPELINE_GRID_GRID_H
#define LOADER_PIPELINE_GRID_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/pipeline/op/op.h"

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

/* Returns a grid with the shape and dtype of a type, without memory. */
struct grid grid_of_type(const struct type *type);

/* Sets the strides of rows and frames without gaps. Returns the size in bytes,
   or UINT64_MAX on overflow. */
uint64_t grid_pack(struct grid *g);

/* Return the bytes of a pixel, and of a row without its gap. */
size_t grid_pixel_size(const struct grid *g);
size_t grid_row_size(const struct grid *g);

static inline uint8_t *grid_row(const struct grid *g, uint32_t frame,
				uint32_t y)
{
	return g->values + frame * g->frame + y * g->stride;
}

/* Narrows the grid to a part, without moving values. */
void grid_crop(struct grid *g, const struct rect *part);

/*
 * Fills a part of all frames with `fill`, one number or one for each channel.
 * Fills a mask with the class `label` instead, which may be NULL if masks skip
 * the operation.
 */
void grid_fill(const struct grid *g, const struct rect *part,
	       const struct arg *fill, const struct arg *label);

/* Copies `in`, optionally mirrored, to `out` of the same shape and dtype. */
void grid_copy(const struct grid *in, bool mirror, const struct grid *out);

/* Converts `in` to the dtype of `out`, which has the same shape. */
void grid_convert(const struct grid *in, const struct grid *out);

/* Writes a grid to a tensor, optionally mirrored. `chw`: channels before
   rows. */
void grid_store(const struct grid *in, bool mirror, bool chw, void *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an image's pipeline: pixels -> the values, type and layout of the
 * tensor, each pixel touched once. What the operations after geometry make of
 * one 8-bit value of one channel can be only 256 things, so a chain is turned
 * into a table once, by the operations' own definitions, and the rest is
 * looking up: any chain costs the same, mirrored or not.
 */
#ifndef LOADER_TAIL_H
#define LOADER_TAIL_H

#include <stdbool.h>

#include "loader/graph.h"
#include "loader/image.h"

enum { TAIL_CHANNELS = 3, TAIL_VALUES = 256 };

/* [TAIL_CHANNELS][TAIL_VALUES] elements of one of these sizes in bits. */
union tail_table {
	uint8_t of_8[TAIL_CHANNELS * TAIL_VALUES];
	uint16_t of_16[TAIL_CHANNELS * TAIL_VALUES];
	uint32_t of_32[TAIL_CHANNELS * TAIL_VALUES];
	uint64_t of_64[TAIL_CHANNELS * TAIL_VALUES];
};

struct tail {
	enum dtype dtype; /* of the result */
	enum layout layout;
	bool plain; /* values stay as they are */
	union tail_table table;
};

/* For a chain whose source is an image; geometry is passed over. */
void tail_init(struct tail *tail, const struct chain *chain);

/* Rows of pixels on their way into a tensor, as geometry makes them. */
struct band {
	const uint8_t *channel[TAIL_CHANNELS]; /* the first R, G and B */
	size_t step;   /* to the next pixel: 3, or 1 if each has a plane */
	size_t stride; /* to the next row */
	uint32_t y;    /* which row of the image the first is */
	uint32_t rows;
};

/*
 * Fills rows of `out`, the tensor of a whole image: image.width * image.height
 * * 3 values aligned as their type. Left and right are exchanged if `mirror`.
 */
void tail_band(const struct tail *tail, struct size image,
	       const struct band *band, bool mirror, void *out);

/* The same for all rows of an image in memory. */
void tail_run(const struct tail *tail, const struct image *in, bool mirror,
	      void *out);

#endif

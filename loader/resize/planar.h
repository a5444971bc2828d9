/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing a JPEG's planes, without ever making the pixels of the image: luma
 * and chroma are filtered as they are, down and then across, and colours are
 * converted last, on the result. beton-transforms(7) defines it to the bit.
 * The planes may be those of a reduced image; what is resized, and how, is said
 * in pixels of the whole one.
 *
 * A planar is one thread's: it keeps memory from image to image.
 */
#ifndef LOADER_RESIZE_PLANAR_H
#define LOADER_RESIZE_PLANAR_H

#include <stdbool.h>

#include "loader/jpeg/baseline.h"
#include "loader/resize/resample.h"

/* Rows of the result: a plane each of R, G and B, which may be one. */
struct planar_rows {
	const uint8_t *channel[3];
	size_t stride;
	uint32_t rows;
};

/* What is resized: a part of an image, perhaps mirrored beforehand. */
struct planar_view {
	struct rect rect;
	bool mirror;
	unsigned reduced; /* by what baseline_reduce() was given; 1: not */
};

struct planar;

int planar_open(struct planar **out);
void planar_close(struct planar *p);

/*
 * Whether a resize can be done so; if it can, *needs is the part of the reduced
 * image whose planes planar_start() wants, with a margin of 1.
 */
bool planar_needs(const struct resize *resize, const struct planar_view *view,
		  struct rect *needs);

/*
 * `image` is the reduced one. The planes must live until the last row was made.
 * -ENOMEM
 */
int planar_start(struct planar *p, const struct resize *resize,
		 const struct planar_view *view,
		 const struct baseline_image *image,
		 const struct baseline_plane *planes);

/* The next rows, valid until the next call; out->rows is 0 after the last. */
void planar_next(struct planar *p, struct planar_rows *out);

/* For tests: other inner loops than the fastest that this machine runs. */
struct planar_class;
void planar_use(struct planar *p, const struct planar_class *class);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing a JPEG's planes without making the pixels of the image. Luma and
 * chroma are filtered down and then across, each at its own size; colors are
 * converted last, on the result. beton-resize(7) defines it to the bit.
 *
 * The planes may be those of a reduced image. Sizes and parts are always given
 * in pixels of the whole image.
 *
 * One thread uses a planar, which keeps its memory from image to image.
 */
#ifndef LOADER_IMAGE_RESIZE_PLANAR_H
#define LOADER_IMAGE_RESIZE_PLANAR_H

#include <stdbool.h>

#include "loader/image/jpeg/baseline.h"
#include "loader/image/resize/resample.h"

/*
 * Rows of the result, in a plane for each of R, G and B. Gray images have the
 * same plane thrice.
 */
struct planar_rows {
	const uint8_t *channel[3];
	size_t stride;
	uint32_t rows;
};

/* The part of an image to resize, perhaps mirrored. */
struct planar_view {
	struct rect rect;
	bool mirror;
	unsigned reduced; /* factor given to baseline_reduce(); 1: none */
};

struct planar;

int planar_open(struct planar **out);
void planar_close(struct planar *p);

/*
 * The factor for baseline_reduce() in draft quality: the reduced image is no
 * smaller than the result.
 */
unsigned planar_reduction(const struct resize *resize);

/*
 * Whether planes can be resized so. If so, *needs is the part of the reduced
 * image whose planes planar_start() needs, with a margin of 1.
 */
bool planar_needs(const struct resize *resize, const struct planar_view *view,
		  struct rect *needs);

/*
 * `image` is the reduced image. The planes must live until the last row is
 * made. -ENOMEM
 */
int planar_start(struct planar *p, const struct resize *resize,
		 const struct planar_view *view,
		 const struct baseline_image *image,
		 const struct baseline_plane *planes);

/* The next rows, valid until the next call; out->rows is 0 after the last. */
void planar_next(struct planar *p, struct planar_rows *out);

/* For tests: use these inner loops instead of the fastest. */
struct planar_class;
void planar_use(struct planar *p, const struct planar_class *class);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaussian blur of an 8-bit RGB image, as torchvision's: of size x size pixels,
 * beside the image mirrored about the outermost ones. The weight of a pixel i
 * away from the middle is exp(-i^2 / (2 sigma^2)) of their sum, rounded to a
 * multiple of 2^-15; what the rounded weights lack of 1 is the middle's.
 * Columns are filtered first, then rows, both in multiples of 2^-7.
 */
#ifndef LOADER_IMAGE_PIXELS_BLUR_H
#define LOADER_IMAGE_PIXELS_BLUR_H

#include "loader/image/pixels/blur_loops.h"
#include "loader/util/image.h"

void blur_init(struct blur *blur, unsigned size, double sigma);

/* Bytes of scratch memory for images of a width. */
uint64_t blur_scratch(unsigned size, uint32_t width);

/* Makes all of `out`, which is as large as `in` and apart from it. */
void blur_image(const struct blur *blur, const struct image *in,
		const struct image *out, void *scratch);

#endif

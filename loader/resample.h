/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing an image, defined to the bit (beton-transforms(7)):
 *
 *   AREA      FFCV's INTER_AREA, to the bit what OpenCV 4 gives. Both axes
 *             shrink or stay: box averages, summed in float32, each product
 *             rounded, over the columns of each row, then over the rows, and
 *             rounded half to even; both by whole factors: the exact sum times
 *             the float32 reciprocal of the area, for 2 x 2 instead
 *             (a + b + c + d + 2) >> 2. Any axis enlarged: bilinear with
 *             11-bit area coefficients. Equal sizes: a copy.
 *   BILINEAR  Pillow's (to version 12: since 13 tall images are resized in the
 *             other order) and torchvision's antialiased bilinear: a triangle
 *             filter, its support scaled by the reduction, 22-bit
 *             coefficients, horizontal pass first, rounded to 8 bits between
 *             the passes.
 *
 * A resampler is one thread's: it keeps scratch memory from image to image.
 */
#ifndef LOADER_RESAMPLE_H
#define LOADER_RESAMPLE_H

#include "loader/image.h"

enum interpolation {
	INTERPOLATION_AREA,
	INTERPOLATION_BILINEAR,
};

struct resampler;

int resampler_open(struct resampler **out);
void resampler_close(struct resampler *r);

/*
 * Fills out->pixels, out->width x out->height, from all of `in`. Neither may be
 * empty, and they may not overlap. -ENOMEM.
 */
int resample(struct resampler *r, enum interpolation how,
	     const struct image *in, struct image *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing an image, defined to the bit (beton-resize(7)):
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
 *   BICUBIC   As BILINEAR with Keys' cubic, a = -1/2, and a windowed sinc of
 *   LANCZOS   three zeros; both passes limit their results to 8 bits.
 *   NEAREST   Pillow's: the pixel that holds the center. Centers are those of
 *             the first pixel plus the scale, over and over, in float64.
 *
 * Rows of the input are asked for from the top, each once, and rows of the
 * result come as soon as theirs are there, so neither has to be in memory
 * whole.
 *
 * A resampler is one thread's: it keeps scratch memory from image to image.
 */
#ifndef LOADER_IMAGE_RESIZE_RESAMPLE_H
#define LOADER_IMAGE_RESIZE_RESAMPLE_H

#include <stdbool.h>

#include "loader/image/resize/axis.h"
#include "loader/util/image.h"

enum interpolation {
	INTERPOLATION_AREA,
	INTERPOLATION_BILINEAR,
	INTERPOLATION_NEAREST,
	INTERPOLATION_BICUBIC,
	INTERPOLATION_LANCZOS,
	INTERPOLATIONS
};

/* A part of the result of a resize. No size is 0. */
struct resize {
	enum interpolation how;
	uint32_t from_width;
	uint32_t from_height;
	uint32_t to_width;
	uint32_t to_height;
	struct rect part; /* of the result */
	bool mirror;	  /* exchange its left and right */
};

/* A source of rows of pixels. */
struct row_source {
	/* Sets *pixels to row y, valid until the next call; y never
	   decreases. */
	int (*row)(void *arg, uint32_t y, const uint8_t **pixels);
	void *arg;
};

/* The filter of both axes. */
enum axis_kind resample_kind(const struct resize *resize);

struct resampler;

int resampler_open(struct resampler **out);
void resampler_close(struct resampler *r);

/*
 * Prepares a part of a resize. *needs is the part of the input that it needs:
 * the source returns rows of needs->width pixels, and row 0 is the first of
 * them. -ENOMEM.
 */
int resample_start(struct resampler *r, const struct resize *resize,
		   struct rect *needs);

/*
 * Writes the next out->height rows of the part to out->pixels. The caller asks
 * for no more than there are. Returns the source's errors.
 */
int resample_rows(struct resampler *r, const struct row_source *source,
		  const struct image *out);

/*
 * Resizes all of `in` to out->pixels, out->width x out->height. Neither may be
 * empty, and they may not overlap. -ENOMEM.
 */
int resample(struct resampler *r, enum interpolation how,
	     const struct image *in, struct image *out);

/*
 * Sets the size of `out` so that its longer side is `limit`, without gaps
 * between rows. Rounds as FFCV does.
 */
void resample_limit(const struct image *in, uint32_t limit, struct image *out);

#endif

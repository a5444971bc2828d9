/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes random and central crops by FFCV's rules (beton-operations(7)). The
 * caller supplies the uniform numbers, so that tests can compare each crop with
 * FFCV's.
 */
#ifndef LOADER_PIPELINE_OP_CROP_H
#define LOADER_PIPELINE_OP_CROP_H

#include "loader/util/image.h"

/* A source of numbers in [0, 1), one per call. */
struct uniform {
	double (*next)(void *arg);
	void *arg;
};

struct crop_limits {
	double scale[2]; /* range, as a fraction of the image's area */
	double ratio[2]; /* range of width / height */
};

/*
 * Draws a random crop of an image of width x height pixels, both at least 1. If
 * the ratio is extreme and the image is thin, the crop can be empty, as in
 * FFCV.
 */
struct rect crop_random(const struct crop_limits *limits,
			struct uniform uniform, uint32_t width,
			uint32_t height);

/* Returns the central square, whose side is `ratio` times the image's shorter
   side. It can be empty. */
struct rect crop_center(double ratio, uint32_t width, uint32_t height);

enum { CROP_CORNERS = 5 };

/*
 * Returns the crop of a corner or of the center. The order is that of
 * torchvision's five_crop(): top left, top right, bottom left, bottom right,
 * center. If the crop is larger than the image, the image limits it.
 */
struct rect crop_corner(unsigned corner, uint32_t crop_width,
			uint32_t crop_height, uint32_t width, uint32_t height);

#endif

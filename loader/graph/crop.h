/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of random and central crops, by FFCV's rules
 * (beton-operations(7)).
 * The caller supplies the uniform numbers, so that tests can compare each draw
 * with FFCV's.
 */
#ifndef LOADER_GRAPH_CROP_H
#define LOADER_GRAPH_CROP_H

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
 * Draws a random crop of an image of width x height, neither 0. Like FFCV's, it
 * may be empty if the ratio is extreme and the image is thin.
 */
struct rect crop_random(const struct crop_limits *limits,
			struct uniform uniform, uint32_t width,
			uint32_t height);

/* The central square; its side is `ratio` times the image's shorter side. It
   may be empty. */
struct rect crop_center(double ratio, uint32_t width, uint32_t height);

enum { CROP_CORNERS = 5 };

/*
 * A crop of a corner, or of the center, of an image that is at least as large:
 * top left, top right, bottom left, bottom right, center, in the order of
 * torchvision's five_crop(). A larger crop is cut to the image.
 */
struct rect crop_corner(unsigned corner, uint32_t crop_width,
			uint32_t crop_height, uint32_t width, uint32_t height);

#endif

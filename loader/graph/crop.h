/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where crops lie: FFCV's rules (beton-transforms(7)), over any source of
 * uniform numbers, so that they can be compared draw by draw.
 */
#ifndef LOADER_GRAPH_CROP_H
#define LOADER_GRAPH_CROP_H

#include "loader/util/image.h"

/* Numbers in [0, 1), one per call. */
struct uniform {
	double (*next)(void *arg);
	void *arg;
};

struct crop_limits {
	double scale[2]; /* of the image's area */
	double ratio[2]; /* of width to height */
};

/*
 * A random crop of an image of width x height, neither 0. As FFCV's, it may be
 * empty where an extreme ratio meets a thin image.
 */
struct rect crop_random(const struct crop_limits *limits,
			struct uniform uniform, uint32_t width,
			uint32_t height);

/* The central square whose side is `ratio` of the shorter; maybe empty. */
struct rect crop_center(double ratio, uint32_t width, uint32_t height);

#endif

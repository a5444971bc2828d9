/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes how an operation moves the pixels of an image. Coordinates are
 * continuous: an image has coordinates from 0 to its width and height. The
 * center of the pixel in column x and row y is (x + 0.5, y + 0.5).
 */
#ifndef LOADER_PIPELINE_LIST_MOVE_H
#define LOADER_PIPELINE_LIST_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/pixels/warp.h"
#include "loader/util/image.h"

/* From an image to its successor: x' = (m[0] x + m[1] y + m[2]) / w,
   y' = (m[3] x + m[4] y + m[5]) / w, w = m[6] x + m[7] y + m[8]. The last three
   are 0, 0 and 1 unless the successor shows the image in perspective. */
struct move {
	double m[9];
	uint32_t width; /* of the successor */
	uint32_t height;
};

/* Nothing moves. */
struct move move_none(uint32_t width, uint32_t height);

/* Crops to a part and resizes it to this size. If `mirror` is set, exchanges
   left and right after that. */
struct move move_crop(const struct rect *part, uint32_t width, uint32_t height,
		      bool mirror);

/* Shifts by whole pixels. */
struct move move_shift(double x, double y, uint32_t width, uint32_t height);

/* Warps by a map. The successor has this size. */
struct move move_of_map(const struct warp_map *map, uint32_t width,
			uint32_t height);

/* Returns the first move followed by the second. */
struct move move_both(const struct move *first, const struct move *second);

/* Moves the point *x, *y. If the point has no image, the results are not
   finite. */
void move_place(const struct move *move, double *x, double *y);

/* Whether the successor is a mirror image near the point (0, 0). */
bool move_is_mirrored(const struct move *move);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and points that go where the pixels below them go. */
#ifndef LOADER_LIST_BOXES_H
#define LOADER_LIST_BOXES_H

#include <stddef.h>

#include "loader/list/move.h"

enum box_format {
	BOX_XYXY,   /* left, top, right, bottom */
	BOX_XYWH,   /* left, top, width, height */
	BOX_CXCYWH, /* center, width, height */
	BOX_XY,	    /* a point */
	BOX_NUMBERS = 4,
};

struct box_rule {
	enum box_format format;
	bool is_normalized; /* coordinates are shares of width and height */
	double min_visible; /* share of the area that must be left */
	double min_size;    /* least width and height, in pixels */
};

/* The numbers of a box, at most BOX_NUMBERS. */
unsigned box_numbers(enum box_format format);

/*
 * Moves a box of an image of this size, in place, and cuts it to the image
 * after each move. Points are not cut. Returns whether the rule keeps it, as
 * none that is not finite.
 */
bool box_follow(const struct box_rule *rule, uint32_t width, uint32_t height,
		const struct move *moves, size_t num_moves,
		double box[BOX_NUMBERS]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Moves boxes and points together with the pixels of an image. */
#ifndef LOADER_PIPELINE_LIST_BOXES_H
#define LOADER_PIPELINE_LIST_BOXES_H

#include <stddef.h>

#include "loader/pipeline/list/move.h"

enum box_format {
	BOX_XYXY,   /* left, top, right, bottom */
	BOX_XYWH,   /* left, top, width, height */
	BOX_CXCYWH, /* center, width, height */
	BOX_XY,	    /* a point */
	BOX_NUMBERS = 4,
};

struct box_rule {
	enum box_format format;
	bool is_normalized; /* coordinates are fractions of width and height */
	double min_visible; /* least fraction of the area that must remain */
	double min_size;    /* least width and height, in pixels */
};

/* Returns the number of coordinates of a box, at most BOX_NUMBERS. */
unsigned box_numbers(enum box_format format);

/*
 * Moves a box of an image of this size, in place, and cuts it to the image
 * after each move. Does not cut points. Returns whether the box remains by the
 * rule. A box with coordinates that are not finite does not remain.
 */
bool box_follow(const struct box_rule *rule, uint32_t width, uint32_t height,
		const struct move *moves, size_t num_moves,
		double box[BOX_NUMBERS]);

#endif

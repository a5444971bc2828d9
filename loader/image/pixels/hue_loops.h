/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop of hue.c, compiled once per instruction set. */
#ifndef LOADER_IMAGE_PIXELS_HUE_LOOPS_H
#define LOADER_IMAGE_PIXELS_HUE_LOOPS_H

#include <stddef.h>

#include "loader/util/image.h"
#include "loader/util/isa_choice.h"

struct hue_loops {
	void (*turn)(uint8_t *pixels, size_t count, uint8_t by);
};

ISA_DECLARE(struct hue_loops, hue_loops);

#endif

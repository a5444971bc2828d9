/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/hue.h"

#include "loader/image/pixels/hue_loops.h"

void hue_turn(const struct image *image, uint8_t by)
{
	const struct hue_loops *loops = ISA_BEST(hue_loops);

	for (uint32_t y = 0; y < image->height; y++)
		loops->turn(image->pixels + y * image->stride, image->width,
			    by);
}

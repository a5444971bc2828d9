/* SPDX-License-Identifier: Apache-2.0 */
/* The gray of a color, as Pillow's convert("L") has it, of 8 or 16 bits. */
#ifndef LOADER_UTIL_GRAY_H
#define LOADER_UTIL_GRAY_H

#include <stdint.h>

static inline uint32_t gray_of(uint32_t r, uint32_t g, uint32_t b)
{
	return (19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16;
}

#endif

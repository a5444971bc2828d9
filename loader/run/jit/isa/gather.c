/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/isa.h"

#include "loader/util/byte16.h"
#include "loader/util/isa_choice.h"

/* Handles blocks of sixteen pixels, and returns the number of pixels done. */
static size_t split_blocks(const uint8_t *restrict in, size_t count,
			   uint8_t *restrict planes, size_t stride)
{
	size_t x = 0;

	for (; x + BYTE16 <= count; x += BYTE16, in += 3 * (size_t)BYTE16) {
		byte16 r, g, b;

		byte16_load_rgb(in, &r, &g, &b);
		byte16_store(planes + x, r);
		byte16_store(planes + stride + x, g);
		byte16_store(planes + 2 * stride + x, b);
	}
	return x;
}

static size_t join_blocks(const uint8_t *const in[3], size_t count,
			  uint8_t *restrict out)
{
	size_t x = 0;

	for (; x + BYTE16 <= count; x += BYTE16, out += 3 * (size_t)BYTE16)
		byte16_store_rgb(out, byte16_load(in[0] + x),
				 byte16_load(in[1] + x),
				 byte16_load(in[2] + x));
	return x;
}

static void split(const uint8_t *restrict in, size_t count,
		  uint8_t *restrict planes, size_t stride)
{
	for (size_t x = split_blocks(in, count, planes, stride); x < count;
	     x++) {
		planes[x] = in[3 * x];
		planes[stride + x] = in[3 * x + 1];
		planes[2 * stride + x] = in[3 * x + 2];
	}
}

static void join(const uint8_t *const in[3], size_t count,
		 uint8_t *restrict out)
{
	for (size_t x = join_blocks(in, count, out); x < count; x++) {
		out[3 * x] = in[0][x];
		out[3 * x + 1] = in[1][x];
		out[3 * x + 2] = in[2][x];
	}
}

static void reverse(const uint8_t *restrict in, size_t count,
		    uint8_t *restrict out)
{
	for (size_t x = 0; x < count; x++)
		out[x] = in[count - 1 - x];
}

/*
 * Reads upward, because CPUs prefetch in that direction: five pixels at a time,
 * and the next write overwrites the extra byte behind them.
 */
static void turn(const uint8_t *restrict in, size_t count,
		 uint8_t *restrict out)
{
	enum { FIVE = 5 };
	size_t left = count;

	for (; left > FIVE; left -= FIVE, in += 3 * (size_t)FIVE) {
		byte16 v = byte16_load(in);

		byte16_store(out + 3 * (left - FIVE) - 1,
			     VECTOR_SHUFFLE(v, v, 15, 12, 13, 14, 9, 10, 11, 6,
					    7, 8, 3, 4, 5, 0, 1, 2));
	}
	for (; left--; in += 3)
		memcpy(out + 3 * left, in, 3);
}

const struct gather ISA_NAME(gather) = { split, join, reverse, turn };

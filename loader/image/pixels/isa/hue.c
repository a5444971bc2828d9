/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/hue_loops.h"

#include <string.h>

/* Compilers vectorize loops of constant length. */
enum { LOT = 32 };

/* Some pixels, by channel, and what they are as HSV. */
struct hue_lot {
	int32_t r[LOT];
	int32_t g[LOT];
	int32_t b[LOT];
	int32_t hue[LOT];
	int32_t share[LOT]; /* saturation */
	int32_t value[LOT];
};

static inline int32_t larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

static inline int32_t smaller(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/*
 * The types of all steps make Pillow's results, which are truncated: a number
 * that is rounded elsewhere gives another hue. A hue is `base` more or less the
 * share of the middle value, in sixths of a turn.
 */
static void split(struct hue_lot *lot)
{
	for (size_t i = 0; i < LOT; i++) {
		int32_t r = lot->r[i], g = lot->g[i], b = lot->b[i];
		int32_t most = larger(r, larger(g, b));
		int32_t least = smaller(r, smaller(g, b));
		int32_t range = most - least, all = range ? range : 1;
		float part = (float)(2 * most - r - g - b + least) / (float)all;
		int32_t falls = r == most ? g >= b : g == most ? b > r : r > g;
		int32_t base = r == most   ? 2 * falls - 1
			       : g == most ? 1 + 2 * falls
					   : 3 + 2 * falls;
		float h = (float)base + (falls ? -part : part);
		float s = (float)range / (float)(most ? most : 1);
		double turn = h * (1 / 6.0) + 1.0;
		float hue = (float)(turn >= 1 ? turn - 1 : turn);

		lot->hue[i] = range ? (int32_t)(hue * 255.0F) : 0;
		lot->share[i] = (int32_t)(s * 255.0F);
		lot->value[i] = most;
	}
}

/* Bit k: what a channel has in sixth k of a turn; without both it is low. */
enum {
	R_FULL = 1 << 0 | 1 << 5,
	R_MID = 1 << 1 | 1 << 4,
	G_FULL = 1 << 1 | 1 << 2,
	G_MID = 1 << 0 | 1 << 3,
	B_FULL = 1 << 3 | 1 << 4,
	B_MID = 1 << 2 | 1 << 5,
};

static inline int32_t chosen(int32_t sixth, int32_t full_in, int32_t mid_in,
			     int32_t full, int32_t mid, int32_t low)
{
	int32_t is_full = -(full_in >> sixth & 1);
	int32_t is_mid = -(mid_in >> sixth & 1);

	return (full & is_full) | (mid & is_mid) | (low & ~(is_full | is_mid));
}

static void join(struct hue_lot *lot, uint8_t by)
{
	for (size_t i = 0; i < LOT; i++) {
		int32_t hue = (lot->hue[i] + by) & 255, v = lot->value[i];
		int32_t parts = hue * 6, sixth = parts * 257 >> 16;
		float f = (float)(parts - 255 * sixth) / 255.0F;
		float s = (float)lot->share[i] / 255.0F;
		double odd = s * f, even = s * (1.0 - f);
		double gone = sixth & 1 ? odd : even;
		int32_t mid = (int32_t)(v * (1.0 - gone) + 0.5);
		int32_t low = (int32_t)(v * (1 - s) + 0.5F);

		lot->r[i] = chosen(sixth, R_FULL, R_MID, v, mid, low);
		lot->g[i] = chosen(sixth, G_FULL, G_MID, v, mid, low);
		lot->b[i] = chosen(sixth, B_FULL, B_MID, v, mid, low);
	}
}

static void load(const uint8_t *p, struct hue_lot *lot)
{
	for (size_t i = 0; i < LOT; i++) {
		lot->r[i] = p[3 * i];
		lot->g[i] = p[3 * i + 1];
		lot->b[i] = p[3 * i + 2];
	}
}

static void store(const struct hue_lot *lot, uint8_t *p)
{
	for (size_t i = 0; i < LOT; i++) {
		p[3 * i] = (uint8_t)lot->r[i];
		p[3 * i + 1] = (uint8_t)lot->g[i];
		p[3 * i + 2] = (uint8_t)lot->b[i];
	}
}

static void turn_lot(uint8_t *p, uint8_t by)
{
	struct hue_lot lot;

	load(p, &lot);
	split(&lot);
	join(&lot, by);
	store(&lot, p);
}

static void turn(uint8_t *pixels, size_t count, uint8_t by)
{
	uint8_t rest[3 * LOT] = { 0 };

	for (; count >= LOT; count -= LOT, pixels += 3 * LOT)
		turn_lot(pixels, by);
	if (!count)
		return;
	memcpy(rest, pixels, 3 * count);
	turn_lot(rest, by);
	memcpy(pixels, rest, 3 * count);
}

const struct hue_loops ISA_NAME(hue_loops) = { .turn = turn };

/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen pixels of three bytes: interleaved, and as three vectors. */
#ifndef LOADER_UTIL_RGB16_H
#define LOADER_UTIL_RGB16_H

#include <stdint.h>

#include "loader/util/shorts.h"

#ifdef __AVX2__
/* The bytes of a, b and c whose places are 0, 1 and 2 modulo 3. */
SHORTS_INLINE byte16 rgb16_choose(byte16 a, byte16 b, byte16 c)
{
	const byte16 third[3] = {
		{ 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255 },
		{ 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 },
		{ 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0 },
	};

	return (a & third[0]) | (b & third[1]) | (c & third[2]);
}

SHORTS_INLINE byte16 rgb16_permute(byte16 v, byte16 places)
{
	return (byte16)_mm_shuffle_epi8((__m128i)v, (__m128i)places);
}

SHORTS_INLINE void rgb16_load(const uint8_t *in, byte16 *r, byte16 *g,
			      byte16 *b)
{
	/* Where byte i of a channel lies: 3 i + channel, modulo 16. */
	const byte16 unmix[3] = {
		{ 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13 },
		{ 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14 },
		{ 2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15 },
	};
	byte16 x = byte16_load(in);
	byte16 y = byte16_load(in + 16);
	byte16 z = byte16_load(in + 32);

	/* 16 is 1 modulo 3, so a channel's bytes lie at different places modulo
	   3 in the three vectors: they never collide. */
	*r = rgb16_permute(rgb16_choose(x, z, y), unmix[0]);
	*g = rgb16_permute(rgb16_choose(y, x, z), unmix[1]);
	*b = rgb16_permute(rgb16_choose(z, y, x), unmix[2]);
}

/* The pixel that byte i of vector k shows in channel c; 255: none. */
#	define RGB16_AT(k, c, i)                                              \
		((16 * (k) + (i) - (c)) % 3 ? 255 : (16 * (k) + (i) - (c)) / 3)
#	define RGB16_FOUR(k, c, i)                                            \
		RGB16_AT(k, c, i), RGB16_AT(k, c, i + 1),                      \
			RGB16_AT(k, c, i + 2), RGB16_AT(k, c, i + 3)
#	define RGB16_PICK(v, k, c)                                            \
		rgb16_permute(v, (byte16){ RGB16_FOUR(k, c, 0),                \
					   RGB16_FOUR(k, c, 4),                \
					   RGB16_FOUR(k, c, 8),                \
					   RGB16_FOUR(k, c, 12) })
#	define RGB16_MIX(k, r, g, b)                                          \
		(RGB16_PICK(r, k, 0) | RGB16_PICK(g, k, 1) |                   \
		 RGB16_PICK(b, k, 2))

SHORTS_INLINE void rgb16_store(uint8_t *out, byte16 r, byte16 g, byte16 b)
{
	byte16_store(out, RGB16_MIX(0, r, g, b));
	byte16_store(out + 16, RGB16_MIX(1, r, g, b));
	byte16_store(out + 32, RGB16_MIX(2, r, g, b));
}
#else
SHORTS_INLINE void rgb16_load(const uint8_t *in, byte16 *r, byte16 *g,
			      byte16 *b)
{
	uint8_t channel[3][BYTE16];

	for (int i = 0; i < BYTE16; i++)
		for (int c = 0; c < 3; c++)
			channel[c][i] = in[3 * i + c];
	*r = byte16_load(channel[0]);
	*g = byte16_load(channel[1]);
	*b = byte16_load(channel[2]);
}

SHORTS_INLINE void rgb16_store(uint8_t *out, byte16 r, byte16 g, byte16 b)
{
	for (int i = 0; i < BYTE16; i++) {
		out[3 * i] = r[i];
		out[3 * i + 1] = g[i];
		out[3 * i + 2] = b[i];
	}
}
#endif

#endif

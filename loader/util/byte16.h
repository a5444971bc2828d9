/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of sixteen bytes, for files that are compiled once per instruction
 * set (isa_choice.h), and sixteen pixels of three bytes as such vectors.
 */
#ifndef LOADER_UTIL_BYTE16_H
#define LOADER_UTIL_BYTE16_H

#include <stdint.h>
#include <string.h>

#ifdef __SSSE3__
#	include <tmmintrin.h>
#endif

enum { BYTE16 = 16 };

typedef uint8_t byte16 __attribute__((vector_size(BYTE16)));

/* A vector of elements at constant places in a, followed by b. */
#ifdef __clang__
#	define VECTOR_SHUFFLE(a, b, ...)                                      \
		__builtin_shufflevector(a, b, __VA_ARGS__)
#else
#	define VECTOR_SHUFFLE(a, b, ...)                                      \
		__builtin_shuffle(a, b, (__typeof__(a)){ __VA_ARGS__ })
#endif

#define BYTE16_INLINE static inline __attribute__((always_inline))

BYTE16_INLINE byte16 byte16_load(const void *p)
{
	byte16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

BYTE16_INLINE void byte16_store(void *p, byte16 v)
{
	memcpy(p, &v, sizeof(v));
}

#ifdef __SSSE3__
/* The bytes of a, b and c whose places are 0, 1 and 2 modulo 3. */
BYTE16_INLINE byte16 byte16_choose(byte16 a, byte16 b, byte16 c)
{
	const byte16 third[3] = {
		{ 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255 },
		{ 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 },
		{ 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0 },
	};

	return (a & third[0]) | (b & third[1]) | (c & third[2]);
}

BYTE16_INLINE byte16 byte16_permute(byte16 v, byte16 places)
{
	return (byte16)_mm_shuffle_epi8((__m128i)v, (__m128i)places);
}

BYTE16_INLINE void byte16_load_rgb(const uint8_t *in, byte16 *r, byte16 *g,
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
	*r = byte16_permute(byte16_choose(x, z, y), unmix[0]);
	*g = byte16_permute(byte16_choose(y, x, z), unmix[1]);
	*b = byte16_permute(byte16_choose(z, y, x), unmix[2]);
}

/* The pixel that byte i of vector k shows in channel c; 255: none. */
#	define BYTE16_AT(k, c, i)                                             \
		((16 * (k) + (i) - (c)) % 3 ? 255 : (16 * (k) + (i) - (c)) / 3)
#	define BYTE16_FOUR(k, c, i)                                           \
		BYTE16_AT(k, c, i), BYTE16_AT(k, c, i + 1),                    \
			BYTE16_AT(k, c, i + 2), BYTE16_AT(k, c, i + 3)
#	define BYTE16_PICK(v, k, c)                                           \
		byte16_permute(v, (byte16){ BYTE16_FOUR(k, c, 0),              \
					    BYTE16_FOUR(k, c, 4),              \
					    BYTE16_FOUR(k, c, 8),              \
					    BYTE16_FOUR(k, c, 12) })
#	define BYTE16_MIX(k, r, g, b)                                         \
		(BYTE16_PICK(r, k, 0) | BYTE16_PICK(g, k, 1) |                 \
		 BYTE16_PICK(b, k, 2))

BYTE16_INLINE void byte16_store_rgb(uint8_t *out, byte16 r, byte16 g, byte16 b)
{
	byte16_store(out, BYTE16_MIX(0, r, g, b));
	byte16_store(out + 16, BYTE16_MIX(1, r, g, b));
	byte16_store(out + 32, BYTE16_MIX(2, r, g, b));
}
#else
BYTE16_INLINE void byte16_load_rgb(const uint8_t *in, byte16 *r, byte16 *g,
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

BYTE16_INLINE void byte16_store_rgb(uint8_t *out, byte16 r, byte16 g, byte16 b)
{
	for (int i = 0; i < BYTE16; i++) {
		out[3 * i] = r[i];
		out[3 * i + 1] = g[i];
		out[3 * i + 2] = b[i];
	}
}
#endif

#endif

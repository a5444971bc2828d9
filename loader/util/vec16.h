/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen bytes to sixteen 32-bit numbers and back, and a multiplication. The
 * plain versions are the definition, and what other machines use.
 */
#ifndef LOADER_UTIL_VEC16_H
#define LOADER_UTIL_VEC16_H

#include <stdint.h>

enum { BLOCK = 16 };

typedef int32_t fixed4 __attribute__((vector_size(16)));

/* A sum, while it is one; both members are 32 bits. */
union cell {
	float real;
	int32_t fixed;
};

static inline void block_real_plain(const uint8_t *in, union cell *out)
{
	for (int i = 0; i < BLOCK; i++)
		out[i].real = in[i];
}

static inline void block_fixed_plain(const uint8_t *in, union cell *out)
{
	for (int i = 0; i < BLOCK; i++)
		out[i].fixed = in[i];
}

/*
 * v and w are pairs of signed 16-bit numbers: the sum of the products of the
 * lower and of the upper ones. It is the fastest multiplication of SSE2, and
 * one of a byte b by 23 bits, too, if v is the pair (b, 128 b).
 */
static inline fixed4 block_pairs_plain(fixed4 v, fixed4 w)
{
	fixed4 v_low = ((v & 0xffff) ^ 0x8000) - 0x8000;
	fixed4 w_low = ((w & 0xffff) ^ 0x8000) - 0x8000;

	return v_low * w_low + (v >> 16) * (w >> 16);
}

/* The low bytes of the numbers. */
static inline void block_narrow_plain(const union cell *in, uint8_t *out)
{
	for (int i = 0; i < BLOCK; i++)
		out[i] = (uint8_t)in[i].fixed;
}

#ifdef __SSE2__
#	include <emmintrin.h>

static inline void block_fixed(const uint8_t *in, union cell *out)
{
	__m128i zero = _mm_setzero_si128();
	__m128i bytes = _mm_loadu_si128((const __m128i *)in);
	__m128i low = _mm_unpacklo_epi8(bytes, zero);
	__m128i high = _mm_unpackhi_epi8(bytes, zero);
	__m128i *to = (__m128i *)out;

	_mm_storeu_si128(to, _mm_unpacklo_epi16(low, zero));
	_mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low, zero));
	_mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high, zero));
	_mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high, zero));
}

static inline void block_real(const uint8_t *in, union cell *out)
{
	__m128i zero = _mm_setzero_si128();
	__m128i bytes = _mm_loadu_si128((const __m128i *)in);
	__m128i low = _mm_unpacklo_epi8(bytes, zero);
	__m128i high = _mm_unpackhi_epi8(bytes, zero);
	float *to = &out->real;

	_mm_storeu_ps(to, _mm_cvtepi32_ps(_mm_unpacklo_epi16(low, zero)));
	_mm_storeu_ps(to + 4, _mm_cvtepi32_ps(_mm_unpackhi_epi16(low, zero)));
	_mm_storeu_ps(to + 8, _mm_cvtepi32_ps(_mm_unpacklo_epi16(high, zero)));
	_mm_storeu_ps(to + 12, _mm_cvtepi32_ps(_mm_unpackhi_epi16(high, zero)));
}

static inline fixed4 block_pairs(fixed4 v, fixed4 w)
{
	return (fixed4)_mm_madd_epi16((__m128i)v, (__m128i)w);
}

static inline void block_narrow(const union cell *in, uint8_t *out)
{
	const __m128i *from = (const __m128i *)in;
	__m128i low = _mm_set1_epi32(255);
	__m128i a = _mm_and_si128(_mm_loadu_si128(from), low);
	__m128i b = _mm_and_si128(_mm_loadu_si128(from + 1), low);
	__m128i c = _mm_and_si128(_mm_loadu_si128(from + 2), low);
	__m128i d = _mm_and_si128(_mm_loadu_si128(from + 3), low);
	__m128i bytes =
		_mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));

	_mm_storeu_si128((__m128i *)out, bytes);
}
#else
static inline void block_fixed(const uint8_t *in, union cell *out)
{
	block_fixed_plain(in, out);
}

static inline void block_real(const uint8_t *in, union cell *out)
{
	block_real_plain(in, out);
}

static inline fixed4 block_pairs(fixed4 v, fixed4 w)
{
	return block_pairs_plain(v, w);
}

static inline void block_narrow(const union cell *in, uint8_t *out)
{
	block_narrow_plain(in, out);
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of 16-bit numbers, eight or with AVX2 sixteen, for files that are
 * compiled once per instruction set (isa_choice.h). The compiler's operators
 * `+`, `-`, `*`, `<<` and `>>` apply to each number. The functions below are
 * the operations that C lacks.
 *
 * The versions for any machine, at the end, are the definition. AVX2 has
 * instructions with the same results.
 */
#ifndef LOADER_UTIL_SHORTS_H
#define LOADER_UTIL_SHORTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loader/util/byte16.h"

#ifdef __AVX2__
#	include <immintrin.h>
#elif defined(__SSE2__)
#	include <emmintrin.h>
#endif

#ifdef __AVX2__
enum { SHORTS_BYTES = 32 };
#else
enum { SHORTS_BYTES = 16 };
#endif
enum { SHORTS = SHORTS_BYTES / 2 };

typedef int16_t shorts __attribute__((vector_size(SHORTS_BYTES)));
typedef uint16_t ushorts __attribute__((vector_size(SHORTS_BYTES)));

#define SHORTS_INLINE static inline __attribute__((always_inline))

SHORTS_INLINE shorts shorts_load(const void *p)
{
	shorts v;

	memcpy(&v, p, sizeof(v));
	return v;
}

SHORTS_INLINE void shorts_store(void *p, shorts v)
{
	memcpy(p, &v, sizeof(v));
}

/* The two numbers in `pair`, the lower one first, repeated. */
SHORTS_INLINE shorts shorts_of_pair(uint32_t pair)
{
	typedef uint32_t pairs __attribute__((vector_size(SHORTS_BYTES)));

	return (shorts)((pairs){ 0 } + pair);
}

/* Every number is v. */
SHORTS_INLINE shorts shorts_of(int v)
{
	return shorts_of_pair((uint32_t)v << 16 | (uint16_t)v);
}

#ifdef __AVX2__
SHORTS_INLINE shorts shorts_add(shorts a, shorts b)
{
	return (shorts)_mm256_adds_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_high(shorts a, shorts b)
{
	return (shorts)_mm256_mulhi_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_scale(shorts a, shorts b)
{
	return (shorts)_mm256_mulhrs_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_blend(shorts a, int ka, shorts b, int kb)
{
	__m256i k = (__m256i)shorts_of_pair((uint32_t)kb << 16 | (uint16_t)ka);
	__m256i half = _mm256_set1_epi32(1 << 15);
	__m256i low = _mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
	__m256i high = _mm256_unpackhi_epi16((__m256i)a, (__m256i)b);

	low = _mm256_add_epi32(_mm256_madd_epi16(low, k), half);
	high = _mm256_add_epi32(_mm256_madd_epi16(high, k), half);
	return (shorts)_mm256_packs_epi32(_mm256_srai_epi32(low, 16),
					  _mm256_srai_epi32(high, 16));
}

SHORTS_INLINE shorts shorts_mean(shorts a, shorts b)
{
	return (shorts)_mm256_avg_epu16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_load_eights(const int16_t *p, size_t stride)
{
	__m128i first = _mm_loadu_si128((const void *)p);
	__m128i second = _mm_loadu_si128((const void *)(p + 8 * stride));

	return (shorts)_mm256_inserti128_si256(_mm256_castsi128_si256(first),
					       second, 1);
}

SHORTS_INLINE shorts shorts_mix_low(shorts a, shorts b)
{
	return (shorts)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_mix_high(shorts a, shorts b)
{
	return (shorts)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_pack(shorts a, shorts b)
{
	return (shorts)_mm256_packus_epi16((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_mix_low_bytes(shorts a, shorts b)
{
	return (shorts)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
}

SHORTS_INLINE shorts shorts_mix_high_bytes(shorts a, shorts b)
{
	return (shorts)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
}

SHORTS_INLINE void shorts_store_eight(void *p, shorts v, unsigned i)
{
	__m128i low = _mm256_castsi256_si128((__m256i)v);
	__m128i high = _mm256_extracti128_si256((__m256i)v, 1);

	_mm_storeu_si128(p, i ? high : low);
}

SHORTS_INLINE shorts shorts_load_bytes(const uint8_t *p)
{
	return (shorts)_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
}

SHORTS_INLINE void shorts_store_bytes(uint8_t *p, shorts v)
{
	__m128i low = _mm256_castsi256_si128((__m256i)v);
	__m128i high = _mm256_extracti128_si256((__m256i)v, 1);

	_mm_storeu_si128((void *)p, _mm_packus_epi16(low, high));
}
#else
/* The sums, limited to 16 bits. */
SHORTS_INLINE shorts shorts_add(shorts a, shorts b)
{
	shorts sum = (shorts)((ushorts)a + (ushorts)b);
	shorts over = ((a ^ sum) & (b ^ sum)) >> 15;

	return (sum & ~over) | (((a >> 15) ^ INT16_MAX) & over);
}

/* The upper 16 bits of the products. */
SHORTS_INLINE shorts shorts_high(shorts a, shorts b)
{
#	ifdef __SSE2__
	return (shorts)_mm_mulhi_epi16((__m128i)a, (__m128i)b);
#	else
	int16_t x[SHORTS], y[SHORTS];

	shorts_store(x, a);
	shorts_store(y, b);
	for (int i = 0; i < SHORTS; i++)
		x[i] = (int16_t)(x[i] * y[i] >> 16);
	return shorts_load(x);
#	endif
}

/*
 * a b / 2^15, rounded half up; not for -2^15 times itself. That is two more
 * bits of the products than shorts_high() has, of which one is rounded off.
 */
SHORTS_INLINE shorts shorts_scale(shorts a, shorts b)
{
	ushorts low = (ushorts)a * (ushorts)b;
	ushorts high = (ushorts)shorts_high(a, b);

	return (shorts)(2 * high + (((low >> 14) + 1) >> 1));
}

/* (a ka + b kb) / 2^16 for 16-bit ka and kb, rounded half up. */
SHORTS_INLINE shorts shorts_blend(shorts a, int ka, shorts b, int kb)
{
	int16_t x[SHORTS], y[SHORTS];

	shorts_store(x, a);
	shorts_store(y, b);
	for (int i = 0; i < SHORTS; i++)
		x[i] = (int16_t)((x[i] * ka + y[i] * kb + (1 << 15)) >> 16);
	return shorts_load(x);
}

/* The means of numbers that are not negative, rounded up. */
SHORTS_INLINE shorts shorts_mean(shorts a, shorts b)
{
	return (a | b) - ((a ^ b) >> 1);
}

/* Eight numbers from each of rows 0, 8 and so on. */
SHORTS_INLINE shorts shorts_load_eights(const int16_t *p, size_t stride)
{
	(void)stride;
	return shorts_load(p);
}

/* Numbers of a and b in turn, from the lower or the upper half of each eight. */
SHORTS_INLINE shorts shorts_mix_low(shorts a, shorts b)
{
	return VECTOR_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

SHORTS_INLINE shorts shorts_mix_high(shorts a, shorts b)
{
	return VECTOR_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/*
 * Bytes, two in each number: of each eight numbers those of a, then those of b,
 * limited to bytes.
 */
SHORTS_INLINE shorts shorts_pack(shorts a, shorts b)
{
#	ifdef __SSE2__
	return (shorts)_mm_packus_epi16((__m128i)a, (__m128i)b);
#	else
	uint8_t bytes[2 * SHORTS];
	shorts v[2] = { (a & (a > 0)) | (a > UINT8_MAX),
			(b & (b > 0)) | (b > UINT8_MAX) };

	for (int i = 0; i < 2 * SHORTS; i++)
		bytes[i] = (uint8_t)v[i / SHORTS][i % SHORTS];
	return shorts_load(bytes);
#	endif
}

/* As shorts_mix_low() and shorts_mix_high(), of sixteen bytes instead of eight
   numbers. */
SHORTS_INLINE shorts shorts_mix_low_bytes(shorts a, shorts b)
{
	return (shorts)VECTOR_SHUFFLE((byte16)a, (byte16)b, 0, 16, 1, 17, 2, 18,
				      3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

SHORTS_INLINE shorts shorts_mix_high_bytes(shorts a, shorts b)
{
	return (shorts)VECTOR_SHUFFLE((byte16)a, (byte16)b, 8, 24, 9, 25, 10,
				      26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
				      31);
}

/* Stores numbers 8 i to 8 i + 7. */
SHORTS_INLINE void shorts_store_eight(void *p, shorts v, unsigned i)
{
	(void)i;
	shorts_store(p, v);
}

typedef uint8_t shorts_bytes __attribute__((vector_size(SHORTS)));

/* SHORTS bytes become as many numbers. */
SHORTS_INLINE shorts shorts_load_bytes(const uint8_t *p)
{
	shorts_bytes v;

	memcpy(&v, p, sizeof(v));
	return __builtin_convertvector(v, shorts);
}

/* SHORTS numbers, limited to bytes. */
SHORTS_INLINE void shorts_store_bytes(uint8_t *p, shorts v)
{
	shorts_bytes bytes = __builtin_convertvector(
		(v & (v > 0)) | (v > UINT8_MAX), shorts_bytes);

	memcpy(p, &bytes, sizeof(bytes));
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common parts of the full inverse DCT and the reduced ones: the order of
 * the coefficients, and arithmetic of 16 and 32 bits as vector code has it.
 */
#ifndef LOADER_IMAGE_JPEG_IDCT_PARTS_H
#define LOADER_IMAGE_JPEG_IDCT_PARTS_H

#include "loader/image/jpeg/idct.h"

enum {
	CONST_BITS = 13, /* of factors: round(x * 8192) */
	PASS1_BITS = 2,	 /* more bits that columns keep for the rows */
	CENTER = 128,
};

/* idct_best() of sides 4 and 2. */
idct_fn *idct_reduced_best(unsigned side);

/* Factors of the first and the second number of a pair. */
struct factors {
	int16_t a;
	int16_t b;
};

/* Row r's pair and place in it; column c's place in a vector. */
static const uint8_t ROW[IDCT_SIDE] = { 48, 1, 32, 16, 49, 17, 33, 0 };
static const uint8_t COLUMN[IDCT_SIDE] = { 8, 2, 12, 4, 10, 6, 14, 0 };

static inline int16_t wrap(int32_t v)
{
	return (int16_t)(uint16_t)v;
}

static inline int16_t saturate(int32_t v)
{
	return (int16_t)(v < INT16_MIN	 ? INT16_MIN
			 : v > INT16_MAX ? INT16_MAX
					 : v);
}

/* Only sums of four can overflow, and they wrap. */
static inline uint32_t products(int16_t a, int16_t b, struct factors f)
{
	return (uint32_t)(a * f.a + b * f.b);
}

static inline int32_t descale(uint32_t v, int shift)
{
	return (int32_t)(v + (1u << (shift - 1))) >> shift;
}

static inline uint8_t to_sample(int32_t v)
{
	return (uint8_t)(CENTER + (v < -128 ? -128 : v > 127 ? 127 : v));
}

/* Column c, multiplied. */
static inline void dequant_column(const int16_t *coefficients,
				  const int16_t *quant, int c,
				  int16_t out[IDCT_SIDE])
{
	for (int r = 0; r < IDCT_SIDE; r++) {
		int at = ROW[r] + COLUMN[c];

		out[r] = wrap(coefficients[at] * quant[at]);
	}
}

#ifdef __x86_64__
#	include <immintrin.h>

#	define AVX2 __attribute__((target("avx2")))
#	define AVX2_INLINE                                                    \
		static inline __attribute__((target("avx2"), always_inline))

AVX2_INLINE int32_t both_factors(struct factors f)
{
	return (int32_t)((uint16_t)f.a | (uint32_t)(uint16_t)f.b << 16);
}

AVX2_INLINE __m256i products8(__m256i pairs, struct factors f)
{
	return _mm256_madd_epi16(pairs, _mm256_set1_epi32(both_factors(f)));
}

AVX2_INLINE __m256i dequant8(const int16_t *coefficients, const int16_t *quant,
			     int pair)
{
	__m256i c = _mm256_load_si256((const __m256i *)coefficients + pair);
	__m256i q = _mm256_load_si256((const __m256i *)quant + pair);

	return _mm256_mullo_epi16(c, q);
}

AVX2_INLINE void clear(int16_t *coefficients)
{
	for (int i = 0; i < 4; i++)
		_mm256_store_si256((__m256i *)coefficients + i,
				   _mm256_setzero_si256());
}

/* Dwords 0 and 2, or 1 and 3, of both halves of both. */
#	define PICK(a, b, which)                                              \
		_mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a),  \
						      _mm256_castsi256_ps(b),  \
						      which))
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of upsample_plain.c with AVX2, sixteen numbers at a time. */
#include "loader/jpeg/upsample.h"
#include "loader/jpeg/upsample_class.h"

#ifdef __x86_64__
#	include <immintrin.h>

#	define AVX2 __attribute__((target("avx2")))
#	define INLINE static inline __attribute__((always_inline)) AVX2

enum { LANES = 16 };

INLINE __m256i load(const int16_t *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i load_bytes(const uint8_t *p)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

INLINE __m256i thrice(__m256i v)
{
	return _mm256_add_epi16(v, _mm256_slli_epi16(v, 1));
}

AVX2 static void sum(const uint8_t *near, const uint8_t *far, size_t n,
		     int16_t *out)
{
	for (size_t x = 0; x < n; x += LANES) {
		__m256i v = load_bytes(near + x);

		if (far)
			v = _mm256_add_epi16(thrice(v), load_bytes(far + x));
		_mm256_storeu_si256((__m256i *)(out + x), v);
	}
}

AVX2 static void twice(const int16_t *in, size_t n, struct fancy_rule rule,
		       uint8_t *out)
{
	const __m256i add_left = _mm256_set1_epi16(rule.add_left);
	const __m256i add_right = _mm256_set1_epi16(rule.add_right);
	const __m128i shift = _mm_cvtsi32_si128(rule.shift);

	for (size_t x = 0; x < n; x += LANES) {
		__m256i here = thrice(load(in + x));
		__m256i left = _mm256_add_epi16(here, load(in + x - 1));
		__m256i right = _mm256_add_epi16(here, load(in + x + 1));

		left = _mm256_srl_epi16(_mm256_add_epi16(left, add_left),
					shift);
		right = _mm256_srl_epi16(_mm256_add_epi16(right, add_right),
					 shift);
		/* Both are bytes: a left one below its right one. */
		right = _mm256_slli_epi16(right, 8);
		_mm256_storeu_si256((__m256i *)(out + 2 * x),
				    _mm256_or_si256(left, right));
	}
}

/*
 * (a k + 2^15) >> 16 of a from -128 to 127 and any k of 16 bits: a is doubled,
 * so that the bit that rounds is still there after the multiplication.
 */
INLINE __m256i part(__m256i doubled, int k)
{
	__m256i v = _mm256_mulhi_epi16(doubled, _mm256_set1_epi16((int16_t)k));

	return _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(1)), 1);
}

/* Green's chroma needs both products before it is rounded. */
INLINE __m256i green_of(__m256i cb, __m256i cr)
{
	const int whole = 1 << FANCY_POINT;
	const __m256i k = _mm256_set1_epi32(
		(int)((uint32_t)(whole + FANCY_GREEN_OF_CR) << 16 |
		      (uint16_t)FANCY_GREEN_OF_CB));
	const __m256i half = _mm256_set1_epi32(whole / 2);
	__m256i a = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), k);
	__m256i b = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), k);

	a = _mm256_srai_epi32(_mm256_add_epi32(a, half), FANCY_POINT);
	b = _mm256_srai_epi32(_mm256_add_epi32(b, half), FANCY_POINT);
	return _mm256_sub_epi16(_mm256_packs_epi32(a, b), cr);
}

/* Sixteen numbers, limited to bytes. */
INLINE __m128i bytes_of(__m256i v)
{
	return _mm_packus_epi16(_mm256_castsi256_si128(v),
				_mm256_extracti128_si256(v, 1));
}

/* Bytes 16 k to 16 k + 15 of what is interleaved, out of one channel c. */
#	define AT(k, c, i)                                                    \
		((16 * (k) + (i) - (c)) % 3 ? -1 : (16 * (k) + (i) - (c)) / 3)
#	define PICK(k, c)                                                     \
		_mm_setr_epi8(AT(k, c, 0), AT(k, c, 1), AT(k, c, 2),           \
			      AT(k, c, 3), AT(k, c, 4), AT(k, c, 5),           \
			      AT(k, c, 6), AT(k, c, 7), AT(k, c, 8),           \
			      AT(k, c, 9), AT(k, c, 10), AT(k, c, 11),         \
			      AT(k, c, 12), AT(k, c, 13), AT(k, c, 14),        \
			      AT(k, c, 15))
#	define MIXED(k)                                                       \
		_mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(r, PICK(k, 0)),     \
					  _mm_shuffle_epi8(g, PICK(k, 1))),    \
			     _mm_shuffle_epi8(b, PICK(k, 2)))

INLINE void store_mixed(uint8_t *out, __m128i r, __m128i g, __m128i b)
{
	__m128i *to = (__m128i *)out;

	_mm_storeu_si128(to, MIXED(0));
	_mm_storeu_si128(to + 1, MIXED(1));
	_mm_storeu_si128(to + 2, MIXED(2));
}

AVX2 static void colour(const uint8_t *const in[3], size_t n, uint8_t *out)
{
	const __m256i zero = _mm256_set1_epi16(FANCY_ZERO_CHROMA);
	const int whole = 1 << FANCY_POINT;

	for (size_t x = 0; x < n; x += LANES) {
		__m256i y = load_bytes(in[0] + x);
		__m256i cb = _mm256_sub_epi16(load_bytes(in[1] + x), zero);
		__m256i cr = _mm256_sub_epi16(load_bytes(in[2] + x), zero);
		__m256i cb2 = _mm256_add_epi16(cb, cb);
		__m256i cr2 = _mm256_add_epi16(cr, cr);
		__m256i red = part(cr2, FANCY_RED_OF_CR - whole);
		__m256i blue = part(cb2, FANCY_BLUE_OF_CB - 2 * whole);

		red = _mm256_add_epi16(y, _mm256_add_epi16(red, cr));
		blue = _mm256_add_epi16(y, _mm256_add_epi16(blue, cb2));
		store_mixed(out + 3 * x, bytes_of(red),
			    bytes_of(_mm256_add_epi16(y, green_of(cb, cr))),
			    bytes_of(blue));
	}
}

static const struct fancy_class AVX2_CLASS = {
	.sum = sum,
	.twice = twice,
	.colour = colour,
};

const struct fancy_class *fancy_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &AVX2_CLASS : NULL;
}
#else
const struct fancy_class *fancy_avx2(void)
{
	return NULL;
}
#endif

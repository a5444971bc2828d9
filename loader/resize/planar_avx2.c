/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of planar_plain.c with AVX2, sixteen numbers at a time. */
#include "loader/resize/planar.h"
#include "loader/resize/planar_class.h"

#ifdef __x86_64__
#	include <immintrin.h>

#	define AVX2 __attribute__((target("avx2")))
/* Of the loops over constant numbers of taps. */
#	define UNROLL _Pragma("GCC unroll 4")
#	define INLINE static inline __attribute__((always_inline)) AVX2

enum { LANES = 16 };

INLINE __m256i load(const void *p)
{
	return _mm256_loadu_si256(p);
}

INLINE void store(void *p, __m256i v)
{
	_mm256_storeu_si256(p, v);
}

INLINE void down_taps(const struct planar_down *d, uint32_t taps)
{
	for (uint32_t x = 0; x < d->width; x += LANES) {
		const uint8_t *p = d->samples + x;
		__m256i sum = _mm256_setzero_si256();

		UNROLL
		for (uint32_t k = 0; k < taps; k++, p += d->stride) {
			__m128i bytes = _mm_loadu_si128((const __m128i *)p);
			__m256i v = _mm256_cvtepu8_epi16(bytes);
			__m256i w = _mm256_set1_epi32((int)d->weights[k]);

			v = _mm256_mulhrs_epi16(
				_mm256_slli_epi16(v, PLANAR_POINT), w);
			sum = _mm256_adds_epi16(sum, v);
		}
		store(d->out + x, sum);
	}
}

AVX2 static void down(const struct planar_down *d)
{
	if (d->taps == 2)
		down_taps(d, 2);
	else if (d->taps == 3)
		down_taps(d, 3);
	else if (d->taps == 4)
		down_taps(d, 4);
	else
		down_taps(d, d->taps);
}

/* Rows i and i + 8 of eight columns, in halves of a vector. */
INLINE __m256i row_pair(const int16_t *in, size_t stride)
{
	__m128i a = _mm_loadu_si128((const __m128i *)in);
	__m128i b = _mm_loadu_si128((const __m128i *)(in + 8 * stride));

	return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

/* Eight columns of sixteen rows: both halves are transposed by themselves. */
INLINE void turn_eight(const int16_t *in, size_t stride, planar_column *out)
{
	__m256i a[8], b[8];

	for (unsigned i = 0; i < 8; i++)
		a[i] = row_pair(in + i * stride, stride);
	for (unsigned i = 0; i < 8; i += 2) {
		b[i] = _mm256_unpacklo_epi16(a[i], a[i + 1]);
		b[i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 1]);
	}
	for (unsigned i = 0; i < 8; i += 4)
		for (unsigned k = 0; k < 2; k++) {
			a[i + 2 * k] =
				_mm256_unpacklo_epi32(b[i + k], b[i + k + 2]);
			a[i + 2 * k + 1] =
				_mm256_unpackhi_epi32(b[i + k], b[i + k + 2]);
		}
	for (unsigned i = 0; i < 4; i++) {
		store(out[2 * i], _mm256_unpacklo_epi64(a[i], a[i + 4]));
		store(out[2 * i + 1], _mm256_unpackhi_epi64(a[i], a[i + 4]));
	}
}

AVX2 static void turn(const int16_t *in, size_t stride, uint32_t width,
		      planar_column *out)
{
	for (uint32_t x = 0; x < width; x += LANES) {
		turn_eight(in + x, stride, out + x);
		turn_eight(in + x + 8, stride, out + x + 8);
	}
}

INLINE void across_taps(const struct filter *f, const planar_column *in,
			planar_column *out, uint32_t taps)
{
	const uint32_t *w = f->weights;

	for (uint32_t i = 0; i < f->count; i++, w += taps) {
		const planar_column *p = in + f->first[i];
		__m256i sum = _mm256_setzero_si256();

		UNROLL
		for (uint32_t k = 0; k < taps; k++)
			sum = _mm256_adds_epi16(
				sum, _mm256_mulhrs_epi16(
					     load(p[k]),
					     _mm256_set1_epi32((int)w[k])));
		store(out[i], sum);
	}
}

AVX2 static void across(const struct filter *f, const planar_column *in,
			planar_column *out)
{
	if (f->taps == 2)
		across_taps(f, in, out, 2);
	else if (f->taps == 3)
		across_taps(f, in, out, 3);
	else if (f->taps == 4)
		across_taps(f, in, out, 4);
	else
		across_taps(f, in, out, f->taps);
}

/* Sixteen rows of sixteen columns, as 16 bits: in[k] is column k. */
INLINE void store_rows(const __m256i in[LANES], uint8_t *out, size_t stride)
{
	__m256i a[8], b[8];

	/* Columns k and k + 8; the lower half has rows 0 to 7. */
	for (unsigned k = 0; k < 8; k++)
		a[k] = _mm256_packus_epi16(in[k], in[k + 8]);
	/* b[k]: two columns of the first eight, b[k + 4]: of the others. */
	for (unsigned k = 0; k < 4; k++) {
		b[k] = _mm256_unpacklo_epi8(a[2 * k], a[2 * k + 1]);
		b[k + 4] = _mm256_unpackhi_epi8(a[2 * k], a[2 * k + 1]);
	}
	/* Four columns: a[2 k] rows 0 to 3, a[2 k + 1] rows 4 to 7. */
	for (unsigned k = 0; k < 4; k++) {
		a[2 * k] = _mm256_unpacklo_epi16(b[2 * k], b[2 * k + 1]);
		a[2 * k + 1] = _mm256_unpackhi_epi16(b[2 * k], b[2 * k + 1]);
	}
	/* Eight columns: b[k] rows 2 k and 2 k + 1, b[k + 4] of the others. */
	for (unsigned k = 0; k < 2; k++)
		for (unsigned h = 0; h < 8; h += 4) {
			b[h + 2 * k] =
				_mm256_unpacklo_epi32(a[h + k], a[h + k + 2]);
			b[h + 2 * k + 1] =
				_mm256_unpackhi_epi32(a[h + k], a[h + k + 2]);
		}
	for (unsigned k = 0; k < 4; k++) {
		__m256i even = _mm256_unpacklo_epi64(b[k], b[k + 4]);
		__m256i odd = _mm256_unpackhi_epi64(b[k], b[k + 4]);
		uint8_t *to = out + 2 * k * stride;

		_mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(even));
		_mm_storeu_si128((__m128i *)(to + stride),
				 _mm256_castsi256_si128(odd));
		to += 8 * stride;
		_mm_storeu_si128((__m128i *)to,
				 _mm256_extracti128_si256(even, 1));
		_mm_storeu_si128((__m128i *)(to + stride),
				 _mm256_extracti128_si256(odd, 1));
	}
}

INLINE __m256i times(__m256i v, int16_t coefficient)
{
	return _mm256_mulhrs_epi16(v, _mm256_set1_epi16(coefficient));
}

INLINE __m256i luma_of(const struct planar_colours *c, uint32_t x)
{
	return _mm256_adds_epi16(load(c->in[0][x]),
				 _mm256_set1_epi16(c->rounding));
}

INLINE __m256i finish(__m256i luma, __m256i chroma)
{
	return _mm256_srai_epi16(_mm256_adds_epi16(luma, chroma), PLANAR_POINT);
}

AVX2 static void colour(const struct planar_colours *c)
{
	const __m256i zero = _mm256_set1_epi16(PLANAR_ZERO_CHROMA);
	__m256i red[LANES], green[LANES], blue[LANES];

	for (uint32_t x = 0; x < c->width; x += LANES) {
		for (unsigned i = 0; i < LANES; i++) {
			__m256i y = luma_of(c, x + i);
			__m256i cb =
				_mm256_sub_epi16(load(c->in[1][x + i]), zero);
			__m256i cr =
				_mm256_sub_epi16(load(c->in[2][x + i]), zero);
			__m256i g =
				_mm256_add_epi16(times(cb, PLANAR_GREEN_OF_CB),
						 times(cr, PLANAR_GREEN_OF_CR));

			red[i] = finish(
				y, _mm256_add_epi16(
					   cr, times(cr, PLANAR_RED_OF_CR)));
			green[i] = finish(y, g);
			blue[i] = finish(
				y, _mm256_add_epi16(
					   cb, times(cb, PLANAR_BLUE_OF_CB)));
		}
		store_rows(red, c->out[0] + x, c->stride);
		store_rows(green, c->out[1] + x, c->stride);
		store_rows(blue, c->out[2] + x, c->stride);
	}
}

AVX2 static void gray(const struct planar_colours *c)
{
	__m256i y[LANES];

	for (uint32_t x = 0; x < c->width; x += LANES) {
		for (unsigned i = 0; i < LANES; i++)
			y[i] = _mm256_srai_epi16(luma_of(c, x + i),
						 PLANAR_POINT);
		store_rows(y, c->out[0] + x, c->stride);
	}
}

static const struct planar_class AVX2_CLASS = {
	.down = down,
	.turn = turn,
	.across = across,
	.colour = colour,
	.gray = gray,
};

const struct planar_class *planar_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &AVX2_CLASS : NULL;
}
#else
const struct planar_class *planar_avx2(void)
{
	return NULL;
}
#endif

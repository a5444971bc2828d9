/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of the numbers of rows.h, for files that are compiled once per
 * instruction set (isa_choice.h): loads and stores of pixels, and the loop over
 * a row of the result.
 */
#ifndef LOADER_IMAGE_RESIZE_ROWS_VECTORS_H
#define LOADER_IMAGE_RESIZE_ROWS_VECTORS_H

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/rows.h"
#include "loader/util/shorts.h"

/* For loops over constant numbers of taps. */
#define UNROLL _Pragma("GCC unroll 4")
#define INLINE static inline __attribute__((always_inline))

enum {
	CHANNELS = 3,
	/* 32-bit numbers in a vector: for each pixel three, and a spare one. */
	LANES = SHORTS_BYTES / 4,
	PIXELS = LANES / 4,
	/* Bytes of the result that are stored at once. */
	WIDE = 4 * LANES,
};

typedef float reals __attribute__((vector_size(SHORTS_BYTES)));
typedef int32_t ints __attribute__((vector_size(SHORTS_BYTES)));

INLINE ints load_ints(const void *p)
{
	ints v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE void store_ints(union cell *p, ints v)
{
	memcpy(p, &v, sizeof(v));
}

INLINE reals all_real(union weight w)
{
	return (reals)((ints){ 0 } + w.fixed);
}

INLINE ints all_fixed(union weight w)
{
	return (ints){ 0 } + w.fixed;
}

#ifdef __AVX2__
INLINE ints load_bytes(const uint8_t *p)
{
	return (ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

/* No byte past the n of the row may be read: the last ones are copied. */
INLINE void widen(const uint8_t *in, size_t n, union cell *out,
		  ints (*become)(ints bytes))
{
	uint8_t last[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		store_ints(out + i, become(load_bytes(in + i)));
	memcpy(last, in + i, n - i);
	store_ints(out + i, become(load_bytes(last)));
}

INLINE ints load_tap(const union cell *const p[PIXELS], uint32_t k)
{
	const union cell *low = p[0] + (size_t)k * CHANNELS;
	const union cell *high = p[1] + (size_t)k * CHANNELS;

	return (ints)_mm256_set_m128(_mm_loadu_ps(&high->real),
				     _mm_loadu_ps(&low->real));
}

INLINE void store_pixels(union cell *out, ints v)
{
	_mm_storeu_ps(&out->real, _mm256_castps256_ps128((__m256)v));
	_mm_storeu_ps(&out[CHANNELS].real, _mm256_extractf128_ps((__m256)v, 1));
}

/* Sixteen bytes from either place. */
INLINE __m256i load_two(const uint8_t *a, const uint8_t *b)
{
	__m128i low = _mm_loadu_si128((const __m128i *)a);
	__m128i high = _mm_loadu_si128((const __m128i *)b);

	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

INLINE ints dot(ints v, ints w)
{
	return (ints)_mm256_madd_epi16((__m256i)v, (__m256i)w);
}

INLINE ints nearest(reals v)
{
	return (ints)_mm256_cvtps_epi32((__m256)v);
}

INLINE void narrow(const ints v[4], uint8_t *out)
{
	__m256i bytes = _mm256_packus_epi16(
		_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]),
		_mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]));

	bytes = _mm256_permutevar8x32_epi32(
		bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
	_mm256_storeu_si256((void *)out, bytes);
}

INLINE void narrow_shorts(const shorts v[2], uint8_t *out)
{
	__m256i bytes = _mm256_packus_epi16((__m256i)v[0], (__m256i)v[1]);

	_mm256_storeu_si256((void *)out, _mm256_permute4x64_epi64(bytes, 0xd8));
}
#else
/* The n bytes of a row become numbers, and those what `become` returns. */
INLINE void widen(const uint8_t *restrict in, size_t n,
		  union cell *restrict out, ints (*become)(ints bytes))
{
	for (size_t i = 0; i < n; i++)
		out[i].fixed = in[i];
	for (size_t i = 0; i < n; i += LANES)
		store_ints(out + i, become(load_ints(out + i)));
}

/* The k-th pixel after each of p, side by side. */
INLINE ints load_tap(const union cell *const p[PIXELS], uint32_t k)
{
	return load_ints(p[0] + (size_t)k * CHANNELS);
}

/* Writes a spare number after each pixel; the next store overwrites it. */
INLINE void store_pixels(union cell *out, ints v)
{
	store_ints(out, v);
}

/*
 * The sum of the products of the lower and of the upper numbers of v and w,
 * which are pairs of signed 16-bit numbers. This is the fastest multiplication
 * of SSE2. If v is the pair (b, 128 b), it multiplies a byte b by 23 bits.
 */
INLINE ints dot(ints v, ints w)
{
#	ifdef __SSE2__
	return (ints)_mm_madd_epi16((__m128i)v, (__m128i)w);
#	else
	ints v_low = ((v & 0xffff) ^ 0x8000) - 0x8000;
	ints w_low = ((w & 0xffff) ^ 0x8000) - 0x8000;

	return v_low * w_low + (v >> 16) * (w >> 16);
#	endif
}

/* The nearest whole numbers, which are 0 to 255; halves become even. */
INLINE ints nearest(reals v)
{
	/* In [2^23, 2^24) floats are whole numbers: adding rounds. */
	return (ints)(v + 0x1.8p23f) & 255;
}

/* WIDE numbers from 0 to 255 become bytes. */
INLINE void narrow(const ints v[4], uint8_t *out)
{
	int32_t numbers[WIDE];

	memcpy(numbers, v, sizeof(numbers));
	for (int i = 0; i < WIDE; i++)
		out[i] = (uint8_t)numbers[i];
}

/* WIDE numbers of 16 bits become bytes, limited to 0 .. 255. */
INLINE void narrow_shorts(const shorts v[2], uint8_t *out)
{
	shorts_store_bytes(out, v[0]);
	shorts_store_bytes(out + SHORTS, v[1]);
}
#endif

/* Vectors on the way down read past the n numbers of a row, of `size` bytes. */
INLINE void clear_padding(void *row, size_t n, size_t size)
{
	memset((uint8_t *)row + n * size, 0, (align_up(n, WIDE) - n) * size);
}

/* Where value i of the result begins its taps, in bytes of a row. */
INLINE size_t first_byte(const struct axis *x, size_t i)
{
	return x->first[i / CHANNELS] * (size_t)CHANNELS + i % CHANNELS;
}

/* Where the pixel begins that is the first of those of the values [i, end);
   mirrored axes run down. */
INLINE uint32_t first_pixel(const struct axis *x, size_t i, size_t end)
{
	uint32_t a = x->first[i / CHANNELS];
	uint32_t b = x->first[(end - 1) / CHANNELS];

	return (a < b ? a : b) * CHANNELS;
}

/* Where the next pixels begin; a last one without a neighbor is its own. */
INLINE void point_pixels(const union cell *in, const uint32_t *first,
			 bool alone, const union cell *p[PIXELS])
{
	for (uint32_t i = 0; i < PIXELS; i++)
		p[i] = in + (size_t)first[alone ? 0 : i] * CHANNELS;
}

typedef ints down_fn(const struct rows_down *d, uint32_t taps, size_t i);

INLINE void wide_down(const struct rows_down *d, uint32_t taps, size_t i,
		      down_fn *some, uint8_t *out)
{
	ints v[4];

	for (unsigned k = 0; k < 4; k++)
		v[k] = some(d, taps, i + k * (size_t)LANES);
	narrow(v, out);
}

/* `some` computes the numbers [i, i + LANES) of a row, each of 0 .. 255. */
INLINE void each_down(const struct rows_down *d, uint32_t taps, down_fn *some)
{
	size_t n = (size_t)d->x->part.count * CHANNELS, i = 0;
	uint8_t last[WIDE];

	for (; i + WIDE <= n; i += WIDE)
		wide_down(d, taps, i, some, d->out + i);
	if (i < n) {
		wide_down(d, taps, i, some, last);
		memcpy(d->out + i, last, n - i);
	}
}

#endif

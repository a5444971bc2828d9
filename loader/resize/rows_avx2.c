/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of rows.c with AVX2. Products and sums are the same, in the same
 * order; only lanes are computed side by side, so the bits cannot differ.
 */
#include "loader/resize/rows.h"

#ifdef __x86_64__
#	include <immintrin.h>
#	include <string.h>

#	include "fs/util/bytes.h"

#	define AVX2 __attribute__((target("avx2")))
/* Of the loops over constant numbers of taps. */
#	define UNROLL _Pragma("GCC unroll 4")
#	define INLINE static inline __attribute__((always_inline)) AVX2

enum {
	CHANNELS = 3,
	PAIR = 2, /* pixels in a vector of eight numbers */
	LANES = 8,
	WIDE = 32, /* bytes of a vector */
};

/* --- two output pixels at a time --------------------------------------- */

/*
 * The weights of two neighbours, tap by tap: four lanes of each. A last pixel
 * without a neighbour is its own.
 */
static size_t pairs_size(const struct axis *x)
{
	return ((size_t)x->part.count + 1) / PAIR * x->taps * LANES *
	       sizeof(union weight);
}

static void pairs_prepare(const struct axis *x, void *prepared)
{
	union weight *to = prepared;
	uint32_t last = x->part.count - 1;

	for (uint32_t i = 0; i <= last; i += PAIR) {
		const union weight *a = x->weights + (size_t)i * x->taps;
		const union weight *b = a + (i < last ? x->taps : 0);

		for (uint32_t k = 0; k < x->taps; k++)
			for (unsigned lane = 0; lane < LANES; lane++)
				*to++ = lane < LANES / 2 ? a[k] : b[k];
	}
}

/* Bytes past the n of the row may not be read: the last block is a copy. */
INLINE void each_block(const uint8_t *in, size_t n, union cell *out,
		       void (*block)(__m128i bytes, union cell *out))
{
	uint8_t last[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		block(_mm_loadl_epi64((const __m128i *)(in + i)), out + i);
	memcpy(last, in + i, n - i);
	block(_mm_loadl_epi64((const __m128i *)last), out + i);
}

INLINE void block_to_real(__m128i bytes, union cell *out)
{
	_mm256_storeu_ps(&out->real,
			 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
}

/* The pairs (b, 128 b), see block_pairs(). */
INLINE __m256i pairs_of(__m256i v)
{
	return _mm256_or_si256(v, _mm256_slli_epi32(v, 23));
}

INLINE void block_to_pairs(__m128i bytes, union cell *out)
{
	_mm256_storeu_si256((__m256i *)out,
			    pairs_of(_mm256_cvtepu8_epi32(bytes)));
}

INLINE __m256 load_two(const union cell *a, const union cell *b)
{
	return _mm256_insertf128_ps(
		_mm256_castps128_ps256(_mm_loadu_ps(&a->real)),
		_mm_loadu_ps(&b->real), 1);
}

/* Both stores are a lane too long; what is written next puts that right. */
INLINE void store_two(union cell *out, __m256 v)
{
	_mm_storeu_ps(&out->real, _mm256_castps256_ps128(v));
	_mm_storeu_ps(&out->real + CHANNELS, _mm256_extractf128_ps(v, 1));
}

/* Where two neighbours begin; the last of an odd number is its own. */
INLINE void starts(const uint32_t *first, bool alone, const union cell *in,
		   const union cell *p[PAIR])
{
	p[0] = in + (size_t)first[0] * CHANNELS;
	p[1] = in + (size_t)first[!alone] * CHANNELS;
}

INLINE void across_real(const struct rows_across *a, uint32_t taps)
{
	const uint32_t *first = a->x->first;
	const union cell *in = a->tmp;
	union cell *out = a->out;
	uint32_t n = a->x->part.count;
	const __m256 *w = a->prepared;

	for (uint32_t i = 0; i < n; i += PAIR, w += taps) {
		const union cell *p[PAIR];
		__m256 sum;

		starts(first + i, i + 1 == n, in, p);
		sum = _mm256_mul_ps(load_two(p[0], p[1]),
				    _mm256_loadu_ps((const float *)w));
		UNROLL
		for (uint32_t k = 1; k < taps; k++) {
			__m256 v = load_two(p[0] + (size_t)k * CHANNELS,
					    p[1] + (size_t)k * CHANNELS);
			__m256 weight = _mm256_loadu_ps((const float *)(w + k));

			sum = _mm256_add_ps(sum, _mm256_mul_ps(v, weight));
		}
		store_two(out + (size_t)i * CHANNELS, sum);
	}
}

AVX2 static void box_across(const struct rows_across *a)
{
	each_block(a->in, (size_t)a->x->span * CHANNELS, a->tmp, block_to_real);
	if (a->x->taps == 2)
		across_real(a, 2);
	else if (a->x->taps == 3)
		across_real(a, 3);
	else if (a->x->taps == 4)
		across_real(a, 4);
	else
		across_real(a, a->x->taps);
}

/* From 2^22 back to bytes, rounded. */
INLINE __m256i of_triangle(__m256i v)
{
	return _mm256_srai_epi32(
		_mm256_add_epi32(v, _mm256_set1_epi32(1 << 21)), 22);
}

INLINE void across_triangle(const struct rows_across *a, uint32_t taps)
{
	const uint32_t *first = a->x->first;
	const union cell *in = a->tmp;
	union cell *out = a->out;
	uint32_t n = a->x->part.count;
	const __m256i *w = a->prepared;

	for (uint32_t i = 0; i < n; i += PAIR, w += taps) {
		const union cell *p[PAIR];
		__m256i sum = _mm256_setzero_si256();

		starts(first + i, i + 1 == n, in, p);
		UNROLL
		for (uint32_t k = 0; k < taps; k++) {
			__m256 v = load_two(p[0] + (size_t)k * CHANNELS,
					    p[1] + (size_t)k * CHANNELS);

			sum = _mm256_add_epi32(
				sum,
				_mm256_madd_epi16(_mm256_castps_si256(v),
						  _mm256_loadu_si256(w + k)));
		}
		sum = pairs_of(of_triangle(sum));
		store_two(out + (size_t)i * CHANNELS, _mm256_castsi256_ps(sum));
	}
}

AVX2 static void triangle_across(const struct rows_across *a)
{
	each_block(a->in, (size_t)a->x->span * CHANNELS, a->tmp,
		   block_to_pairs);
	if (a->x->taps == 3)
		across_triangle(a, 3);
	else if (a->x->taps == 4)
		across_triangle(a, 4);
	else if (a->x->taps == 5)
		across_triangle(a, 5);
	else
		across_triangle(a, a->x->taps);
}

/* --- down: 32 values at a time ------------------------------------------- */

/* Four vectors of eight numbers from 0 to 255, in order. */
INLINE __m256i narrow(const __m256i v[4])
{
	__m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]),
					    _mm256_packs_epi32(v[2], v[3]));

	return _mm256_permutevar8x32_epi32(
		bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Bytes [i, i + 32) of the n of a row. */
INLINE void store_bytes(uint8_t *out, size_t i, size_t n, __m256i bytes)
{
	uint8_t last[WIDE];

	if (i + WIDE <= n) {
		_mm256_storeu_si256((__m256i *)(out + i), bytes);
		return;
	}
	_mm256_storeu_si256((__m256i *)last, bytes);
	memcpy(out + i, last, n - i);
}

INLINE __m256i eight_real(const struct rows_down *d, uint32_t taps, size_t i)
{
	__m256 sum = _mm256_mul_ps(_mm256_loadu_ps(&d->rows[0][i].real),
				   _mm256_set1_ps(d->w[0].real));

	UNROLL
	for (uint32_t k = 1; k < taps; k++)
		sum = _mm256_add_ps(
			sum, _mm256_mul_ps(_mm256_loadu_ps(&d->rows[k][i].real),
					   _mm256_set1_ps(d->w[k].real)));
	/* To the nearest, halves to even, as adding 1.5 * 2^23 does. */
	return _mm256_cvtps_epi32(sum);
}

INLINE __m256i eight_triangle(const struct rows_down *d, uint32_t taps,
			      size_t i)
{
	__m256i sum = _mm256_setzero_si256();

	UNROLL
	for (uint32_t k = 0; k < taps; k++)
		sum = _mm256_add_epi32(
			sum, _mm256_madd_epi16(
				     _mm256_loadu_si256(
					     (const __m256i *)(d->rows[k] + i)),
				     _mm256_set1_epi32(d->w[k].fixed)));
	return of_triangle(sum);
}

INLINE void each_down(const struct rows_down *d, uint32_t taps,
		      __m256i (*eight)(const struct rows_down *d, uint32_t taps,
				       size_t i))
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	for (size_t i = 0; i < n; i += WIDE) {
		__m256i v[4];

		for (unsigned k = 0; k < 4; k++)
			v[k] = eight(d, taps, i + k * LANES);
		store_bytes(d->out, i, n, narrow(v));
	}
}

AVX2 static void box_down(const struct rows_down *d)
{
	if (d->taps == 2)
		each_down(d, 2, eight_real);
	else if (d->taps == 3)
		each_down(d, 3, eight_real);
	else
		each_down(d, d->taps, eight_real);
}

AVX2 static void triangle_down(const struct rows_down *d)
{
	if (d->taps == 3)
		each_down(d, 3, eight_triangle);
	else if (d->taps == 4)
		each_down(d, 4, eight_triangle);
	else
		each_down(d, d->taps, eight_triangle);
}

/* --- enlarging ----------------------------------------------------------- */

enum {
	SIXTEEN = 16, /* values of a step, */
	QUARTERS = 4, /* four from each load of 16 bytes */
};

/*
 * How sixteen values are made: `at` is where the 16 bytes begin that four of
 * them are made of, `pick` moves those to (left, right) pairs of 16 bits, the
 * first and third four into the lower vector, so that packing restores order.
 */
struct linear_step {
	uint32_t at[QUARTERS];
	uint8_t pick[QUARTERS][16];
	int16_t weights[QUARTERS][8];
};

static size_t linear_size(const struct axis *x)
{
	size_t n = (size_t)x->part.count * CHANNELS;

	return (n + SIXTEEN - 1) / SIXTEEN * sizeof(struct linear_step);
}

/* The values [value, value + 4), or as many as there are. */
static void linear_quarter(const struct axis *x, size_t value, unsigned q,
			   struct linear_step *step)
{
	size_t n = (size_t)x->part.count * CHANNELS;
	size_t end = min_u64(value + 4, n);
	uint32_t a, b;

	step->at[q] = 0;
	memset(step->pick[q], 0x80, sizeof(step->pick[q]));
	memset(step->weights[q], 0, sizeof(step->weights[q]));
	if (value >= n)
		return;
	/* Two pixels at most, and mirrored axes run down. */
	a = x->first[value / CHANNELS];
	b = x->first[(end - 1) / CHANNELS];
	step->at[q] = (a < b ? a : b) * CHANNELS;
	for (size_t i = value; i < end; i++) {
		size_t pixel = i / CHANNELS, lane = 2 * (i - value);
		size_t left = x->first[pixel] * (size_t)CHANNELS +
			      i % CHANNELS - step->at[q];

		for (uint32_t k = 0; k < x->taps; k++) {
			step->pick[q][2 * (lane + k)] =
				(uint8_t)(left + k * CHANNELS);
			step->weights[q][lane + k] =
				(int16_t)x->weights[pixel * x->taps + k].fixed;
		}
	}
}

static void linear_prepare(const struct axis *x, void *prepared)
{
	struct linear_step *step = prepared;
	size_t n = (size_t)x->part.count * CHANNELS;

	/* Values 0-3, 8-11 and 4-7, 12-15: see linear_step. */
	for (size_t i = 0; i < n; i += SIXTEEN, step++) {
		linear_quarter(x, i, 0, step);
		linear_quarter(x, i + 8, 1, step);
		linear_quarter(x, i + 4, 2, step);
		linear_quarter(x, i + 12, 3, step);
	}
}

/* Whether two neighbours' pixels are within 16 bytes, everywhere. */
static bool is_near(const struct axis *x)
{
	return 3 * (uint64_t)x->part.to >= x->part.from;
}

INLINE __m256i linear_eight(const uint8_t *in, const struct linear_step *step,
			    unsigned q)
{
	__m128i a = _mm_loadu_si128((const __m128i *)(in + step->at[q]));
	__m128i b = _mm_loadu_si128((const __m128i *)(in + step->at[q + 1]));
	__m256i bytes =
		_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
	__m256i pairs = _mm256_shuffle_epi8(
		bytes, _mm256_loadu_si256((const __m256i *)step->pick[q]));

	return _mm256_srli_epi32(
		_mm256_madd_epi16(
			pairs,
			_mm256_loadu_si256((const __m256i *)step->weights[q])),
		4);
}

/* Shrinking threefold or more beside an axis that enlarges. */
static void linear_far(const struct rows_across *a)
{
	const struct axis *x = a->x;
	int16_t *out = (int16_t *)a->out;

	for (uint32_t i = 0; i < x->part.count; i++)
		for (uint32_t c = 0; c < CHANNELS; c++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < x->taps; k++)
				sum += a->in[(x->first[i] + k) * CHANNELS + c] *
				       x->weights[i * x->taps + k].fixed;
			*out++ = (int16_t)(sum >> 4);
		}
}

/*
 * The first of the shifts of linear_down() comes here already: then numbers are
 * 15 bits, and a row of them is half as long.
 */
AVX2 static void linear_across(const struct rows_across *a)
{
	const struct linear_step *step = a->prepared;
	size_t n = (size_t)a->x->part.count * CHANNELS;
	int16_t *out = (int16_t *)a->out;
	const uint8_t *in = (const uint8_t *)a->tmp;

	if (!is_near(a->x)) {
		linear_far(a);
		return;
	}
	/* Sixteen bytes may be read from anywhere in a row. */
	memcpy(a->tmp, a->in, (size_t)a->x->span * CHANNELS);
	for (size_t i = 0; i < n; i += SIXTEEN, step++)
		_mm256_storeu_si256(
			(__m256i *)(out + i),
			_mm256_packs_epi32(linear_eight(in, step, 0),
					   linear_eight(in, step, 2)));
}

/* Sixteen of 0 .. 255; the upper half of a product is the shift by 16. */
INLINE __m256i linear_sum(const struct rows_down *d, uint32_t taps,
			  const __m256i w[], size_t i)
{
	__m256i sum = _mm256_set1_epi16(2);

	UNROLL
	for (uint32_t k = 0; k < taps; k++) {
		const int16_t *row = (const int16_t *)d->rows[k] + i;
		__m256i v = _mm256_loadu_si256((const __m256i *)row);

		sum = _mm256_add_epi16(sum, _mm256_mulhi_epi16(v, w[k]));
	}
	return _mm256_srai_epi16(sum, 2);
}

INLINE void down_linear(const struct rows_down *d, uint32_t taps)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;
	__m256i w[2];

	UNROLL
	for (uint32_t k = 0; k < taps; k++)
		w[k] = _mm256_set1_epi16((int16_t)d->w[k].fixed);
	for (size_t i = 0; i < n; i += WIDE) {
		__m256i bytes = _mm256_packus_epi16(
			linear_sum(d, taps, w, i),
			linear_sum(d, taps, w, i + SIXTEEN));

		store_bytes(d->out, i, n,
			    _mm256_permute4x64_epi64(bytes, 0xd8));
	}
}

AVX2 static void linear_down(const struct rows_down *d)
{
	if (d->taps == 2)
		down_linear(d, 2);
	else
		down_linear(d, 1);
}

static const struct rows_class CLASSES[] = {
	[AXIS_BOX] = { pairs_size, pairs_prepare, box_across, box_down },
	[AXIS_LINEAR] = { linear_size, linear_prepare, linear_across,
			  linear_down },
	[AXIS_TRIANGLE] = { pairs_size, pairs_prepare, triangle_across,
			    triangle_down },
};

const struct rows_class *rows_class_avx2(enum axis_kind kind)
{
	if (kind >= ARRAY_LEN(CLASSES) || !CLASSES[kind].across ||
	    !__builtin_cpu_supports("avx2"))
		return NULL;
	return &CLASSES[kind];
}
#else
const struct rows_class *rows_class_avx2(enum axis_kind kind)
{
	(void)kind;
	return NULL;
}
#endif

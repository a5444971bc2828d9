/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of rows.h, on a vector of numbers at a time. Lanes never meet,
 * and each makes its products and sums in the same order: the bits are those of
 * plain C.
 */
#include "loader/image/resize/rows.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/rows_vectors.h"
#include "loader/util/isa_choice.h"

/* --- across, some pixels at a time --------------------------------------- */

/*
 * The weights of pixels that are computed together, tap by tap, four times
 * each. A last pixel without a neighbor is its own neighbor.
 */
static size_t weights_size(const struct axis *x)
{
	return ((size_t)x->part.count + 1) / PIXELS * x->taps * sizeof(ints);
}

static void weights_prepare(const struct axis *x, void *prepared)
{
	union weight *to = prepared;
	uint32_t last = x->part.count - 1;

	for (uint32_t i = 0; i <= last; i += PIXELS) {
		const union weight *w = x->weights + (size_t)i * x->taps;
		size_t next = i < last ? x->taps : 0;

		for (uint32_t k = 0; k < x->taps; k++)
			for (unsigned lane = 0; lane < LANES; lane++)
				*to++ = w[k + (lane < 4 ? 0 : next)];
	}
}

INLINE ints reals_of(ints v)
{
	return (ints) __builtin_convertvector(v, reals);
}

/* The pairs (b, 128 b), see dot(). */
INLINE ints pairs_of(ints v)
{
	return v | v << 23;
}

INLINE ints keep_ints(ints v)
{
	return v;
}

INLINE void across_real(const struct rows_across *a, uint32_t taps)
{
	const union cell *in = a->tmp;
	const uint32_t *first = a->x->first;
	uint32_t count = a->x->part.count;
	union cell *out = a->out;
	const ints *w = a->prepared;

	for (uint32_t i = 0; i < count; i += PIXELS, w += taps) {
		const union cell *p[PIXELS];
		reals sum;

		point_pixels(in, first + i, i + 1 == count, p);
		sum = (reals)load_tap(p, 0) * (reals)load_ints(w);
		UNROLL
		for (uint32_t k = 1; k < taps; k++)
			sum += (reals)load_tap(p, k) * (reals)load_ints(w + k);
		store_pixels(out + (size_t)i * CHANNELS, (ints)sum);
	}
}

static void box_across(const struct rows_across *a)
{
	widen(a->in, (size_t)a->x->span * CHANNELS, a->tmp, reals_of);
	if (a->x->taps == 2)
		across_real(a, 2);
	else if (a->x->taps == 3)
		across_real(a, 3);
	else if (a->x->taps == 4)
		across_real(a, 4);
	else
		across_real(a, a->x->taps);
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS,
		      sizeof(*a->out));
}

/*
 * From units of 2^-22 to 0 .. 255, rounded. The weights are rounded too and may
 * add up to a little more than 1, but no value reaches 256.
 */
INLINE ints of_triangle(ints v)
{
	return (v + (1 << 21)) >> 22;
}

INLINE void across_triangle(const struct rows_across *a, uint32_t taps)
{
	const union cell *in = a->tmp;
	const ints *w = a->prepared;
	const uint32_t *first = a->x->first;
	uint32_t count = a->x->part.count;
	union cell *out = a->out;

	for (uint32_t i = 0; i < count; i += PIXELS, w += taps) {
		const union cell *p[PIXELS];
		ints sum = { 0 };

		point_pixels(in, first + i, i + 1 == count, p);
		UNROLL
		for (uint32_t k = 0; k < taps; k++)
			sum += dot(load_tap(p, k), load_ints(w + k));
		store_pixels(out + (size_t)i * CHANNELS,
			     pairs_of(of_triangle(sum)));
	}
}

static void triangle_across(const struct rows_across *a)
{
	widen(a->in, (size_t)a->x->span * CHANNELS, a->tmp, pairs_of);
	if (a->x->taps == 3)
		across_triangle(a, 3);
	else if (a->x->taps == 4)
		across_triangle(a, 4);
	else if (a->x->taps == 5)
		across_triangle(a, 5);
	else
		across_triangle(a, a->x->taps);
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS,
		      sizeof(*a->out));
}

static void whole_across(const struct rows_across *a)
{
	uint32_t taps = a->x->taps, count = a->x->part.count;

	widen(a->in, (size_t)a->x->span * CHANNELS, a->tmp, keep_ints);
	for (uint32_t i = 0; i < count; i += PIXELS) {
		const union cell *p[PIXELS];
		ints sum = { 0 };

		point_pixels(a->tmp, a->x->first + i, i + 1 == count, p);
		for (uint32_t k = 0; k < taps; k++)
			sum += load_tap(p, k);
		store_pixels(a->out + (size_t)i * CHANNELS, sum);
	}
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS,
		      sizeof(*a->out));
}

/* --- down ---------------------------------------------------------------- */

INLINE ints some_real(const struct rows_down *d, uint32_t taps, size_t i)
{
	reals sum = (reals)load_ints(d->rows[0] + i) * all_real(d->w[0]);

	UNROLL
	for (uint32_t k = 1; k < taps; k++)
		sum += (reals)load_ints(d->rows[k] + i) * all_real(d->w[k]);
	return nearest(sum);
}

static void box_down(const struct rows_down *d)
{
	if (d->taps == 2)
		each_down(d, 2, some_real);
	else if (d->taps == 3)
		each_down(d, 3, some_real);
	else
		each_down(d, d->taps, some_real);
}

INLINE ints some_triangle(const struct rows_down *d, uint32_t taps, size_t i)
{
	ints sum = { 0 };

	UNROLL
	for (uint32_t k = 0; k < taps; k++)
		sum += dot(load_ints(d->rows[k] + i), all_fixed(d->w[k]));
	return of_triangle(sum);
}

static void triangle_down(const struct rows_down *d)
{
	if (d->taps == 3)
		each_down(d, 3, some_triangle);
	else if (d->taps == 4)
		each_down(d, 4, some_triangle);
	else
		each_down(d, d->taps, some_triangle);
}

/* 2 x 2 is a case of its own in OpenCV, rounded half up. */
INLINE ints some_quarter(const struct rows_down *d, uint32_t taps, size_t i)
{
	(void)taps;
	return (load_ints(d->rows[0] + i) + load_ints(d->rows[1] + i) + 2) >> 2;
}

INLINE ints some_whole(const struct rows_down *d, uint32_t taps, size_t i)
{
	float inverse = 1.f / (float)(d->x->taps * taps);
	ints sum = { 0 };

	for (uint32_t k = 0; k < taps; k++)
		sum += load_ints(d->rows[k] + i);
	return nearest(__builtin_convertvector(sum, reals) * inverse);
}

static void whole_down(const struct rows_down *d)
{
	if (d->x->taps == 2 && d->taps == 2)
		each_down(d, 2, some_quarter);
	else
		each_down(d, d->taps, some_whole);
}

/* --- enlarging ----------------------------------------------------------- */

/*
 * Rows between across and down have numbers of 16 bits: OpenCV's first shift on
 * the way down is done across already, which leaves 15 bits.
 */
INLINE void linear_taps(const struct rows_across *a, uint32_t taps)
{
	const uint8_t *in = a->in;
	const uint32_t *first = a->x->first;
	const union weight *w = a->x->weights;
	uint32_t count = a->x->part.count;
	int16_t *restrict out = (int16_t *)a->out;

	for (uint32_t i = 0; i < count; i++, w += taps)
		for (uint32_t c = 0; c < CHANNELS; c++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < taps; k++)
				sum += in[(first[i] + k) * CHANNELS + c] *
				       w[k].fixed;
			*out++ = (int16_t)(sum >> 4);
		}
}

static void linear_each(const struct rows_across *a)
{
	if (a->x->taps == 2)
		linear_taps(a, 2);
	else
		linear_taps(a, 1);
}

#ifdef __AVX2__
enum {
	SIXTEEN = 16, /* values of a step */
	QUARTERS = 4, /* loads of 16 bytes for a step, each for four values */
	/* Bytes of a row that are copied to memory that is longer: of a
	   step that reads past the row, no load begins before them. */
	LAST = 128,
};

/*
 * How to compute sixteen values. `at` is where the 16 bytes begin that four
 * values need; `pick` moves those bytes to (left, right) pairs of 16 bits. The
 * first and third four are in the lower vector, so that packing restores order.
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

	step->at[q] = 0;
	memset(step->pick[q], 0x80, sizeof(step->pick[q]));
	memset(step->weights[q], 0, sizeof(step->weights[q]));
	if (value >= n)
		return;
	/* Four values are of two pixels at most. */
	step->at[q] = first_pixel(x, value, end);
	for (size_t i = value; i < end; i++) {
		size_t pixel = i / CHANNELS, lane = 2 * (i - value);
		size_t left = first_byte(x, i) - step->at[q];

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

/* Whether the pixels of any two neighbors lie within 16 bytes. */
static bool is_near(const struct axis *x)
{
	return 3 * (uint64_t)x->part.to >= x->part.from;
}

INLINE __m256i linear_eight(const uint8_t *in, const struct linear_step *step,
			    unsigned q)
{
	__m256i bytes = load_two(in + step->at[q], in + step->at[q + 1]);
	__m256i pairs = _mm256_shuffle_epi8(
		bytes, _mm256_loadu_si256((const __m256i *)step->pick[q]));

	return _mm256_srli_epi32(
		_mm256_madd_epi16(
			pairs,
			_mm256_loadu_si256((const __m256i *)step->weights[q])),
		4);
}

INLINE void linear_sixteen(const uint8_t *in, const struct linear_step *step,
			   int16_t *out)
{
	_mm256_storeu_si256((__m256i *)out,
			    _mm256_packs_epi32(linear_eight(in, step, 0),
					       linear_eight(in, step, 2)));
}

/* Whether a step reads past the end of a row. */
INLINE bool is_past(const struct linear_step *step, size_t size)
{
	for (unsigned q = 0; q < QUARTERS; q++)
		if (step->at[q] + sizeof(step->pick[q]) > size)
			return true;
	return false;
}

static void linear_across(const struct rows_across *a)
{
	const struct linear_step *step = a->prepared;
	size_t n = (size_t)a->x->part.count * CHANNELS;
	size_t size = (size_t)a->x->span * CHANNELS;
	int16_t *out = (int16_t *)a->out;
	size_t last = size > LAST ? size - LAST : 0;
	uint8_t *padded = (uint8_t *)a->tmp;

	if (!is_near(a->x)) {
		linear_each(a);
		return;
	}
	memcpy(padded + last, a->in + last, size - last);
	for (size_t i = 0; i < n; i += SIXTEEN, step++)
		linear_sixteen(is_past(step, size) ? padded : a->in, step,
			       out + i);
}
#else
static size_t linear_size(const struct axis *x)
{
	(void)x;
	return 0;
}

static void linear_prepare(const struct axis *x, void *prepared)
{
	(void)x;
	(void)prepared;
}

static void linear_across(const struct rows_across *a)
{
	linear_each(a);
}
#endif

/* WIDE bytes. As OpenCV shifts, each row loses its own low bits. */
INLINE void wide_linear(const int16_t *const rows[2], const int w[2],
			uint32_t taps, size_t i, uint8_t *out)
{
	shorts sum[2];

	for (unsigned half = 0; half < 2; half++, i += SHORTS) {
		sum[half] = shorts_of(2);
		UNROLL
		for (uint32_t k = 0; k < taps; k++)
			sum[half] += shorts_high(shorts_load(rows[k] + i),
						 shorts_of(w[k]));
		sum[half] >>= 2;
	}
	narrow_shorts(sum, out);
}

INLINE void down_linear(const struct rows_down *d, uint32_t taps)
{
	size_t n = (size_t)d->x->part.count * CHANNELS, i = 0;
	const int16_t *rows[2];
	uint8_t last[WIDE];
	int w[2];

	UNROLL
	for (uint32_t k = 0; k < taps; k++) {
		rows[k] = (const int16_t *)d->rows[k];
		w[k] = d->w[k].fixed;
	}
	for (; i + WIDE <= n; i += WIDE)
		wide_linear(rows, w, taps, i, d->out + i);
	if (i < n) {
		wide_linear(rows, w, taps, i, last);
		memcpy(d->out + i, last, n - i);
	}
}

static void linear_down(const struct rows_down *d)
{
	if (d->taps == 2)
		down_linear(d, 2);
	else
		down_linear(d, 1);
}

const struct rows_table ISA_NAME(rows) = { {
	[AXIS_BOX] = { weights_size, weights_prepare, box_across, box_down },
	[AXIS_WHOLE] = { .across = whole_across, .down = whole_down },
	[AXIS_LINEAR] = { linear_size, linear_prepare, linear_across,
			  linear_down },
	[AXIS_TRIANGLE] = { weights_size, weights_prepare, triangle_across,
			    triangle_down },
} };

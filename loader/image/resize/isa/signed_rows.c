/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters with weights below 0 and above 1, in whole numbers of 22 bits. A
 * weight is 256 u + l, two signed 16-bit numbers, and dot() multiplies those.
 *
 * Between the passes, and across without AVX2, a byte v is x = v - 128 as the
 * pair (256 x, x): one dot() makes its product. The sum then lacks 128 times
 * all weights, which is what it begins with.
 */
#include <stdint.h>

#include "loader/image/resize/axis.h"
#include "loader/image/resize/rows.h"
#include "loader/image/resize/rows_vectors.h"
#include "loader/util/isa_choice.h"

enum {
	OFFSET = 128,
	HALF = 1 << (AXIS_ONE_BITS - 1),
};

/* The first term of a sum of products; it makes the sum a rounded one of
   bytes. */
static int32_t begin_of(const union weight *w, uint32_t taps)
{
	int32_t sum = 0;

	for (uint32_t k = 0; k < taps; k++)
		sum += (int16_t)w[k].fixed + 256 * (w[k].fixed >> 16);
	return OFFSET * sum + HALF;
}

INLINE ints pairs_of(ints x)
{
	return (x & 0xffff) | x << 24;
}

INLINE ints pairs_of_bytes(ints v)
{
	return pairs_of(v - OFFSET);
}

/* Rounds a sum down, and limits it to 0 .. 255. */
INLINE ints bytes_of(ints sum)
{
	ints v = sum >> AXIS_ONE_BITS;

	v &= v > 0;
	return (v | (v > UINT8_MAX)) & UINT8_MAX;
}

#ifdef __AVX2__
enum {
	STEP = 4, /* taps of a step: 12 bytes of a pixel and its neighbors */
	TAP_BYTES = STEP * CHANNELS,
};

/*
 * The weights of four taps of two pixels, in pairs of taps for each channel and
 * a spare one. A weight is 256 upper + lower.
 */
struct signed_rows_step {
	int16_t upper[2][2 * LANES];
	int16_t lower[2][2 * LANES];
};

static size_t steps_of(const struct axis *x)
{
	return (x->taps + STEP - 1) / STEP;
}

static size_t signed_size(const struct axis *x)
{
	return ((size_t)x->part.count + 1) / PIXELS * steps_of(x) *
	       sizeof(struct signed_rows_step);
}

/* One of the two pixels. */
static void set_step(struct signed_rows_step *step, unsigned pixel,
		     const union weight *w, uint32_t taps)
{
	for (uint32_t k = 0; k < STEP; k++) {
		int32_t pair = k < taps ? w[k].fixed : 0;

		for (unsigned c = 0; c < 4; c++) {
			unsigned at = 8 * pixel + 2 * c + k % 2;

			step->upper[k / 2][at] = (int16_t)(pair >> 16);
			step->lower[k / 2][at] = (int16_t)pair;
		}
	}
}

static void signed_prepare(const struct axis *x, void *prepared)
{
	struct signed_rows_step *step = prepared;
	uint32_t last = x->part.count - 1;

	for (uint32_t i = 0; i <= last; i += PIXELS) {
		const union weight *a = x->weights + (size_t)i * x->taps;
		const union weight *b = a + (i < last ? x->taps : 0);

		for (uint32_t k = 0; k < x->taps; k += STEP, step++) {
			set_step(step, 0, a + k, x->taps - k);
			set_step(step, 1, b + k, x->taps - k);
		}
	}
}

/* Bytes 3 k + c and 3 k + 3 + c of each channel c become pairs. */
INLINE __m256i pair_taps(__m256i bytes, int k)
{
	const char at = (char)(CHANNELS * k);
	const __m128i pick = _mm_setr_epi8(
		at, -1, (char)(at + 3), -1, (char)(at + 1), -1, (char)(at + 4),
		-1, (char)(at + 2), -1, (char)(at + 5), -1, -1, -1, -1, -1);

	return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(pick));
}

INLINE ints across_two(const uint8_t *a, const uint8_t *b,
		       const struct signed_rows_step *step, size_t steps)
{
	ints upper = { 0 }, lower = { 0 };

	for (size_t k = 0; k < steps; k++, a += TAP_BYTES, b += TAP_BYTES) {
		__m256i bytes = load_two(a, b);
		ints first = (ints)pair_taps(bytes, 0);
		ints second = (ints)pair_taps(bytes, 2);

		upper += dot(first, load_ints(step[k].upper[0]));
		lower += dot(first, load_ints(step[k].lower[0]));
		upper += dot(second, load_ints(step[k].upper[1]));
		lower += dot(second, load_ints(step[k].lower[1]));
	}
	return (upper << 8) + lower + HALF;
}

static void signed_across(const struct rows_across *a)
{
	const uint32_t *first = a->x->first;
	uint32_t count = a->x->part.count;
	size_t steps = steps_of(a->x);
	const struct signed_rows_step *step = a->prepared;
	const uint8_t *in = (const uint8_t *)a->tmp;

	/* Sixteen bytes may be read from anywhere in a row. */
	memcpy(a->tmp, a->in, (size_t)a->x->span * CHANNELS);
	for (uint32_t i = 0; i < count; i += PIXELS, step += steps) {
		const uint8_t *left = in + (size_t)first[i] * CHANNELS;
		const uint8_t *right =
			i + 1 < count ? in + (size_t)first[i + 1] * CHANNELS
				      : left;

		store_pixels(a->out + (size_t)i * CHANNELS,
			     pairs_of_bytes(bytes_of(
				     across_two(left, right, step, steps))));
	}
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS,
		      sizeof(*a->out));
}
#else
/*
 * The weights of pixels that are computed together, tap by tap, four times
 * each, after what their sums begin with. A last pixel without a neighbor is
 * its own neighbor.
 */
static size_t signed_size(const struct axis *x)
{
	return ((size_t)x->part.count + 1) / PIXELS * (x->taps + 1) *
	       sizeof(ints);
}

static void signed_prepare(const struct axis *x, void *prepared)
{
	int32_t *to = prepared;
	uint32_t last = x->part.count - 1;

	for (uint32_t i = 0; i <= last; i += PIXELS) {
		const union weight *w[2] = {
			x->weights + (size_t)i * x->taps,
			x->weights + (size_t)(i < last ? i + 1 : i) * x->taps,
		};

		for (unsigned lane = 0; lane < LANES; lane++)
			*to++ = begin_of(w[lane / 4], x->taps);
		for (uint32_t k = 0; k < x->taps; k++)
			for (unsigned lane = 0; lane < LANES; lane++)
				*to++ = w[lane / 4][k].fixed;
	}
}

INLINE void across_signed(const struct rows_across *a, uint32_t taps)
{
	const uint32_t *first = a->x->first;
	uint32_t count = a->x->part.count;
	const ints *w = a->prepared;

	for (uint32_t i = 0; i < count; i += PIXELS, w += taps + 1) {
		const union cell *p[PIXELS];
		ints sum = load_ints(w);

		point_pixels(a->tmp, first + i, i + 1 == count, p);
		UNROLL
		for (uint32_t k = 0; k < taps; k++)
			sum += dot(load_tap(p, k), load_ints(w + 1 + k));
		store_pixels(a->out + (size_t)i * CHANNELS,
			     pairs_of_bytes(bytes_of(sum)));
	}
}

static void signed_across(const struct rows_across *a)
{
	widen(a->in, (size_t)a->x->span * CHANNELS, a->tmp, pairs_of_bytes);
	across_signed(a, a->x->taps);
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS,
		      sizeof(*a->out));
}

#endif

/* WIDE bytes. Each weight is loaded once for all of them. */
INLINE void wide_signed(const struct rows_down *d, int32_t begin, size_t i,
			uint8_t *out)
{
	ints sum[4];

	for (unsigned v = 0; v < 4; v++)
		sum[v] = (ints){ 0 } + begin;
	for (uint32_t k = 0; k < d->taps; k++) {
		const union cell *row = d->rows[k] + i;
		ints w = all_fixed(d->w[k]);

		for (unsigned v = 0; v < 4; v++)
			sum[v] += dot(load_ints(row + v * (size_t)LANES), w);
	}
	for (unsigned v = 0; v < 4; v++)
		sum[v] = bytes_of(sum[v]);
	narrow(sum, out);
}

static void signed_down(const struct rows_down *d)
{
	size_t n = (size_t)d->x->part.count * CHANNELS, i = 0;
	int32_t begin = begin_of(d->w, d->taps);
	uint8_t last[WIDE];

	for (; i + WIDE <= n; i += WIDE)
		wide_signed(d, begin, i, d->out + i);
	if (i < n) {
		wide_signed(d, begin, i, last);
		memcpy(d->out + i, last, n - i);
	}
}

const struct rows_class ISA_NAME(signed_rows) = {
	signed_size,
	signed_prepare,
	signed_across,
	signed_down,
};

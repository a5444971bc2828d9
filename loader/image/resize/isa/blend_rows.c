/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AXIS_TRIANGLE across a blend: each value lies between two others, a and b,
 * whose weights are together 2^22. If w is the weight of a, the result is
 *
 *	(a w + b (2^22 - w) + 2^21) >> 22 = b + (((a - b) w + 2^21) >> 22)
 *
 * and 16 bits suffice for that. Rows between across and down are bytes in
 * numbers of 16 bits. Down may be a blend too, or any sum.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/axis.h"
#include "loader/image/resize/rows.h"
#include "loader/image/resize/rows_vectors.h"
#include "loader/util/byte16.h"
#include "loader/util/isa_choice.h"

INLINE int32_t weight_of(union weight w)
{
	return axis_pair(w, 128);
}

/* A weight is 2^16 high + low. */
static int16_t high_of(int32_t weight)
{
	return (int16_t)((weight + (1 << 15)) >> 16);
}

static int16_t low_of(int32_t weight)
{
	return (int16_t)weight;
}

/*
 * Shifts by 16 bits, then by the other 6. The first shift drops bits of the
 * lower product only.
 */
INLINE shorts between(shorts a, shorts b, shorts high, shorts low)
{
	shorts d = a - b;

	return b + ((d * high + shorts_high(d, low) + (1 << 5)) >> 6);
}

/* --- across -------------------------------------------------------------- */

#ifdef __AVX2__
enum { EIGHT = SHORTS / 2 };

/*
 * Where the values of a step are: `at` is where the 16 bytes begin that eight
 * of them need, of which `left` and `right` make numbers.
 */
struct places {
	uint32_t at[2];
	uint8_t left[2][2 * EIGHT];
	uint8_t right[2][2 * EIGHT];
};

/* Eight values are of four pixels at most. As these are not shrunk, they need
   no more than five, which are 15 bytes. Values past the last are 0. */
static void set_half(struct places *p, unsigned half, const struct axis *x,
		     size_t value)
{
	size_t n = (size_t)x->part.count * CHANNELS;
	size_t end = min_u64(value + EIGHT, n);

	p->at[half] = 0;
	memset(p->left[half], 0x80, sizeof(p->left[half]));
	memset(p->right[half], 0x80, sizeof(p->right[half]));
	if (value >= n)
		return;
	p->at[half] = first_pixel(x, value, end);
	for (size_t lane = 0; value < end; value++, lane++) {
		size_t left = first_byte(x, value) - p->at[half];

		p->left[half][2 * lane] = (uint8_t)left;
		p->right[half][2 * lane] = (uint8_t)(left + CHANNELS);
	}
}

static void set_places(struct places *p, const struct axis *x, size_t value)
{
	set_half(p, 0, x, value);
	set_half(p, 1, x, value + EIGHT);
}

INLINE shorts pick(__m256i bytes, const uint8_t places[2][2 * EIGHT])
{
	return (shorts)_mm256_shuffle_epi8(
		bytes, _mm256_loadu_si256((const void *)places));
}

INLINE void look_up(const uint8_t *in, const struct places *p, shorts *left,
		    shorts *right)
{
	__m256i bytes = load_two(in + p->at[0], in + p->at[1]);

	*left = pick(bytes, p->left);
	*right = pick(bytes, p->right);
}
#else
struct places {
	uint32_t left[SHORTS];
};

/* Values past the last are any. */
static void set_places(struct places *p, const struct axis *x, size_t value)
{
	size_t n = (size_t)x->part.count * CHANNELS;

	for (size_t i = 0; i < SHORTS; i++, value++)
		p->left[i] = value < n ? (uint32_t)first_byte(x, value) : 0;
}

INLINE void look_up(const uint8_t *in, const struct places *p, shorts *left,
		    shorts *right)
{
	int16_t a[SHORTS], b[SHORTS];

	for (size_t i = 0; i < SHORTS; i++) {
		a[i] = in[p->left[i]];
		b[i] = in[p->left[i] + CHANNELS];
	}
	*left = shorts_load(a);
	*right = shorts_load(b);
}
#endif

/* How to compute as many values as a vector has. */
struct blend_rows_step {
	struct places places;
	int16_t high[SHORTS];
	int16_t low[SHORTS];
};

static size_t blend_size(const struct axis *x)
{
	size_t n = (size_t)x->part.count * CHANNELS;

	return (n + SHORTS - 1) / SHORTS * sizeof(struct blend_rows_step);
}

static void blend_prepare(const struct axis *x, void *prepared)
{
	struct blend_rows_step *step = prepared;
	size_t n = (size_t)x->part.count * CHANNELS;

	for (size_t value = 0; value < n; value += SHORTS, step++) {
		set_places(&step->places, x, value);
		for (size_t i = 0; i < SHORTS; i++) {
			size_t pixel = min_u64(value + i, n - 1) / CHANNELS;
			int32_t w = weight_of(x->weights[pixel * x->taps]);

			step->high[i] = high_of(w);
			step->low[i] = low_of(w);
		}
	}
}

static void blend_across(const struct rows_across *a)
{
	const struct blend_rows_step *step = a->prepared;
	size_t n = (size_t)a->x->part.count * CHANNELS;
	int16_t *out = (int16_t *)a->out;
	shorts left, right;

	/* Sixteen bytes may be read from anywhere in a row. */
	memcpy(a->tmp, a->in, (size_t)a->x->span * CHANNELS);
	for (size_t i = 0; i < n; i += SHORTS, step++) {
		look_up((const uint8_t *)a->tmp, &step->places, &left, &right);
		shorts_store(out + i,
			     between(left, right, shorts_load(step->high),
				     shorts_load(step->low)));
	}
	clear_padding(out, n, sizeof(*out));
}

/* --- down ---------------------------------------------------------------- */

/* Pairs of a number of a and one of b, in an order that rejoin() undoes. */
INLINE void interleave(shorts a, shorts b, ints pairs[2])
{
#ifdef __AVX2__
	pairs[0] = (ints)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
	pairs[1] = (ints)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
#else
	pairs[0] = (ints)VECTOR_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
	pairs[1] = (ints)VECTOR_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

/* The lower halves of numbers that are 0 to 255. */
INLINE shorts rejoin(const ints v[2])
{
#ifdef __AVX2__
	return (shorts)_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]);
#elif defined(__SSE2__)
	return (shorts)_mm_packs_epi32((__m128i)v[0], (__m128i)v[1]);
#else
	return VECTOR_SHUFFLE((shorts)v[0], (shorts)v[1], 0, 2, 4, 6, 8, 10, 12,
			      14);
#endif
}

INLINE shorts load_row(const struct rows_down *d, uint32_t k, size_t i)
{
	return shorts_load((const int16_t *)d->rows[k] + i);
}

INLINE shorts some_blend(const struct rows_down *d, uint32_t taps, size_t i)
{
	int32_t w = weight_of(d->w[0]);

	(void)taps;
	return between(load_row(d, 0, i), load_row(d, 1, i),
		       shorts_of(high_of(w)), shorts_of(low_of(w)));
}

/*
 * Two taps at a time: pairs of numbers by pairs of the halves of their weights,
 * which are 128 upper + lower.
 */
INLINE shorts some_sum(const struct rows_down *d, uint32_t taps, size_t i)
{
	ints upper[2] = { { 0 } }, lower[2] = { { 0 } };

	UNROLL
	for (uint32_t k = 0; k < taps; k += 2) {
		uint32_t next = k + 1 < taps ? k + 1 : k, a, b;
		ints pairs[2];

		a = (uint32_t)d->w[k].fixed;
		b = next > k ? (uint32_t)d->w[next].fixed : 0;
		interleave(load_row(d, k, i), load_row(d, next, i), pairs);
		for (unsigned half = 0; half < 2; half++) {
			upper[half] += dot(pairs[half],
					   (ints)shorts_of_pair(
						   (b & 0xffff0000) | a >> 16));
			lower[half] += dot(
				pairs[half],
				(ints)shorts_of_pair(b << 16 | (a & 0xffff)));
		}
	}
	for (unsigned half = 0; half < 2; half++)
		lower[half] = (lower[half] + (upper[half] << 7) + (1 << 21)) >>
			      AXIS_ONE_BITS;
	return rejoin(lower);
}

typedef shorts some_fn(const struct rows_down *d, uint32_t taps, size_t i);

/* WIDE bytes; `some` makes SHORTS of their numbers. */
INLINE void wide_shorts(const struct rows_down *d, uint32_t taps, some_fn *some,
			size_t i, uint8_t *out)
{
	const shorts v[2] = { some(d, taps, i), some(d, taps, i + SHORTS) };

	narrow_shorts(v, out);
}

INLINE void each_shorts(const struct rows_down *d, uint32_t taps, some_fn *some)
{
	size_t n = (size_t)d->x->part.count * CHANNELS, i = 0;
	uint8_t last[WIDE];

	for (; i + WIDE <= n; i += WIDE)
		wide_shorts(d, taps, some, i, d->out + i);
	if (i < n) {
		wide_shorts(d, taps, some, i, last);
		memcpy(d->out + i, last, n - i);
	}
}

static void blend_down(const struct rows_down *d)
{
	bool is_blend =
		d->taps == 2 &&
		weight_of(d->w[0]) + weight_of(d->w[1]) == 1 << AXIS_ONE_BITS;

	if (is_blend)
		each_shorts(d, 2, some_blend);
	else if (d->taps == 3)
		each_shorts(d, 3, some_sum);
	else if (d->taps == 4)
		each_shorts(d, 4, some_sum);
	else
		each_shorts(d, d->taps, some_sum);
}

const struct rows_class ISA_NAME(blend_rows) = {
	blend_size,
	blend_prepare,
	blend_across,
	blend_down,
};

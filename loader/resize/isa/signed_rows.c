/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters with weights below 0 and above 1, in whole numbers of 22 bits.
 *
 * A byte v is a number x = v - 128 between the passes, as the pair (x, 256 x)
 * of signed 16-bit numbers. Then one multiplication of pairs, dot(), makes the
 * product with a weight a + 256 b. The sum lacks 128 times all weights, which
 * is added first.
 */
#include <stdint.h>

#include "loader/resize/axis.h"
#include "loader/resize/rows.h"
#include "loader/resize/rows_vectors.h"
#include "loader/util/isa_choice.h"

enum {
	OFFSET = 128,
	HALF = 1 << (AXIS_ONE_BITS - 1),
};

/* What a sum of products begins with, so that it is one of bytes, rounded. */
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
	clear_padding(a->out, (size_t)a->x->part.count * CHANNELS);
}

INLINE ints some_signed(const struct rows_down *d, uint32_t taps, size_t i)
{
	ints sum = (ints){ 0 } + d->tmp->fixed;

	UNROLL
	for (uint32_t k = 0; k < taps; k++)
		sum += dot(load_ints(d->rows[k] + i), all_fixed(d->w[k]));
	return bytes_of(sum);
}

static void signed_down(const struct rows_down *d)
{
	d->tmp->fixed = begin_of(d->w, d->taps);
	each_down(d, d->taps, some_signed);
}

const struct rows_class ISA_NAME(signed_rows) = {
	signed_size,
	signed_prepare,
	signed_across,
	signed_down,
};

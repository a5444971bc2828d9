/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/resize/rows.h"

#include <string.h>

#include "fs/util/bytes.h"

/*
 * Three colours and a lane that nobody looks at. The vectors are the compiler's
 * own, of the size that every x86-64 and ARMv8 has; lanes never meet, so the
 * bits are those of plain C.
 */
typedef float real4 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

enum {
	CHANNELS = 3,
	LANES = 4,
	/* What any class reads or writes at once. */
	ROWS_BLOCK = 32,
};

/* In [2^23, 2^24) floats are whole numbers: adding rounds half to even. */
static const float ROUNDING = 0x1.8p23f;

size_t rows_size(uint32_t width)
{
	return align_up((uint64_t)width * CHANNELS, ROWS_BLOCK) + ROWS_BLOCK;
}

INLINE real4 load_real(const union cell *p)
{
	real4 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE fixed4 load_fixed(const union cell *p)
{
	fixed4 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE void store_real(union cell *p, real4 v)
{
	memcpy(p, &v, sizeof(v));
}

INLINE void store_fixed(union cell *p, fixed4 v)
{
	memcpy(p, &v, sizeof(v));
}

INLINE real4 weight_real(const union weight *w)
{
	return (real4){ w->real, w->real, w->real, w->real };
}

INLINE fixed4 weight_fixed(const union weight *w)
{
	return (fixed4){ w->fixed, w->fixed, w->fixed, w->fixed };
}

/* What is past the n numbers of a row is read too, and never looked at. */
static void clear_tail(union cell *row, size_t n)
{
	size_t end = align_up(n, ROWS_BLOCK);

	memset(row + n, 0, (end - n) * sizeof(*row));
}

/* Bytes past the n of the row may not be read: the last block is a copy. */
INLINE void widen(const uint8_t *in, size_t n, union cell *out,
		  void (*block)(const uint8_t *in, union cell *out))
{
	uint8_t last[BLOCK] = { 0 };
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK)
		block(in + i, out + i);
	memcpy(last, in + i, n - i);
	block(last, out + i);
	clear_tail(out, n);
}

static void narrow(const union cell *in, size_t n, uint8_t *out)
{
	uint8_t last[BLOCK];
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK)
		block_narrow(in + i, out + i);
	if (i < n) {
		block_narrow(in + i, last);
		memcpy(out + i, last, n - i);
	}
}

/*
 * Wherever this is inlined with a constant `taps` the compiler unrolls it: two
 * to four are what ordinary crops have. Each store is one lane too long; the
 * next puts that right, and the last ends in the padding.
 */
INLINE void taps_real(const struct axis *x, uint32_t taps,
		      const union cell *restrict in, union cell *restrict out)
{
	const union weight *w = x->weights;

	for (uint32_t i = 0; i < x->part.count; i++, w += taps) {
		const union cell *p = in + (size_t)x->first[i] * CHANNELS;
		real4 sum = load_real(p) * weight_real(w);

		for (uint32_t k = 1; k < taps; k++)
			sum += load_real(p + (size_t)k * CHANNELS) *
			       weight_real(w + k);
		store_real(out + (size_t)i * CHANNELS, sum);
	}
}

/* As above; the numbers are pairs, see block_pairs(). */
INLINE void taps_fixed(const struct axis *x, uint32_t taps,
		       const union cell *restrict in, union cell *restrict out)
{
	const union weight *w = x->weights;

	for (uint32_t i = 0; i < x->part.count; i++, w += taps) {
		const union cell *p = in + (size_t)x->first[i] * CHANNELS;
		fixed4 sum = block_pairs(load_fixed(p), weight_fixed(w));

		for (uint32_t k = 1; k < taps; k++)
			sum += block_pairs(load_fixed(p + (size_t)k * CHANNELS),
					   weight_fixed(w + k));
		store_fixed(out + (size_t)i * CHANNELS, sum);
	}
}

static void box_across(const struct rows_across *a)
{
	const struct axis *x = a->x;
	widen(a->in, (size_t)x->span * CHANNELS, a->tmp, block_real);
	if (x->taps == 2)
		taps_real(x, 2, a->tmp, a->out);
	else if (x->taps == 3)
		taps_real(x, 3, a->tmp, a->out);
	else if (x->taps == 4)
		taps_real(x, 4, a->tmp, a->out);
	else
		taps_real(x, x->taps, a->tmp, a->out);
	clear_tail(a->out, (size_t)x->part.count * CHANNELS);
}

static void whole_across(const struct rows_across *a)
{
	const struct axis *x = a->x;
	widen(a->in, (size_t)x->span * CHANNELS, a->tmp, block_fixed);
	for (uint32_t i = 0; i < x->part.count; i++) {
		const union cell *p = a->tmp + (size_t)x->first[i] * CHANNELS;
		fixed4 sum = load_fixed(p);

		for (uint32_t k = 1; k < x->taps; k++)
			sum += load_fixed(p + (size_t)k * CHANNELS);
		store_fixed(a->out + (size_t)i * CHANNELS, sum);
	}
	clear_tail(a->out, (size_t)x->part.count * CHANNELS);
}

static void linear_across(const struct rows_across *a)
{
	const struct axis *x = a->x;
	widen(a->in, (size_t)x->span * CHANNELS, a->tmp, block_fixed);
	taps_fixed(x, x->taps, a->tmp, a->out);
	clear_tail(a->out, (size_t)x->part.count * CHANNELS);
}

/* The pairs (b, 128 b) of numbers b. */
INLINE void make_pairs(union cell *row, size_t n)
{
	for (size_t i = 0; i < n; i += LANES) {
		fixed4 v = load_fixed(row + i);

		store_fixed(row + i, v | v << 23);
	}
}

/*
 * Back from 2^22 to 0 .. 255, rounded. The weights are rounded too and may add
 * up to a little more than 1, never to so much that a value reached 256.
 */
INLINE void of_triangle(union cell *row, size_t n)
{
	for (size_t i = 0; i < n; i += LANES) {
		fixed4 v = load_fixed(row + i);

		store_fixed(row + i, (v + (1 << 21)) >> 22);
	}
}

static void triangle_across(const struct rows_across *a)
{
	const struct axis *x = a->x;
	size_t n = (size_t)x->part.count * CHANNELS;

	widen(a->in, (size_t)x->span * CHANNELS, a->tmp, block_fixed);
	make_pairs(a->tmp, (size_t)x->span * CHANNELS);
	if (x->taps == 3)
		taps_fixed(x, 3, a->tmp, a->out);
	else if (x->taps == 4)
		taps_fixed(x, 4, a->tmp, a->out);
	else if (x->taps == 5)
		taps_fixed(x, 5, a->tmp, a->out);
	else
		taps_fixed(x, x->taps, a->tmp, a->out);
	of_triangle(a->out, n);
	make_pairs(a->out, n);
	clear_tail(a->out, n);
}

INLINE void sum_real(const struct rows_down *d, uint32_t taps,
		     const union cell *const *rows, union cell *restrict out)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	for (size_t i = 0; i < n; i += LANES) {
		real4 sum = load_real(rows[0] + i) * weight_real(d->w);

		for (uint32_t k = 1; k < taps; k++)
			sum += load_real(rows[k] + i) * weight_real(d->w + k);
		store_real(out + i, sum + ROUNDING);
	}
}

static void box_down(const struct rows_down *d)
{
	if (d->taps == 2)
		sum_real(d, 2, d->rows, d->tmp);
	else if (d->taps == 3)
		sum_real(d, 3, d->rows, d->tmp);
	else
		sum_real(d, d->taps, d->rows, d->tmp);
	narrow(d->tmp, (size_t)d->x->part.count * CHANNELS, d->out);
}

/* 2 x 2 is a case of its own in OpenCV, rounded half up. */
static void quarter_down(const struct rows_down *d)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	for (size_t i = 0; i < n; i += LANES) {
		fixed4 sum =
			load_fixed(d->rows[0] + i) + load_fixed(d->rows[1] + i);

		store_fixed(d->tmp + i, (sum + 2) >> 2);
	}
	narrow(d->tmp, n, d->out);
}

static void whole_down(const struct rows_down *d)
{
	float inverse = 1.f / (float)(d->x->taps * d->taps);
	size_t n = (size_t)d->x->part.count * CHANNELS;

	if (d->x->taps == 2 && d->taps == 2) {
		quarter_down(d);
		return;
	}
	for (size_t i = 0; i < n; i += LANES) {
		fixed4 sum = load_fixed(d->rows[0] + i);

		for (uint32_t k = 1; k < d->taps; k++)
			sum += load_fixed(d->rows[k] + i);

		real4 mean = __builtin_convertvector(sum, real4) * inverse;

		store_real(d->tmp + i, mean + ROUNDING);
	}
	narrow(d->tmp, n, d->out);
}

/* OpenCV's order of shifts: each row loses its own low bits. */
static void linear_down(const struct rows_down *d)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	for (size_t i = 0; i < n; i += LANES) {
		fixed4 sum = { 2, 2, 2, 2 };

		for (uint32_t k = 0; k < d->taps; k++) {
			fixed4 v = load_fixed(d->rows[k] + i) >> 4;

			sum += block_pairs(v, weight_fixed(d->w + k)) >> 16;
		}
		store_fixed(d->tmp + i, sum >> 2);
	}
	narrow(d->tmp, n, d->out);
}

INLINE void sum_fixed(const struct rows_down *d, uint32_t taps,
		      const union cell *const *rows, union cell *restrict out)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	for (size_t i = 0; i < n; i += LANES) {
		fixed4 sum = block_pairs(load_fixed(rows[0] + i),
					 weight_fixed(d->w));

		for (uint32_t k = 1; k < taps; k++)
			sum += block_pairs(load_fixed(rows[k] + i),
					   weight_fixed(d->w + k));
		store_fixed(out + i, sum);
	}
}

static void triangle_down(const struct rows_down *d)
{
	size_t n = (size_t)d->x->part.count * CHANNELS;

	if (d->taps == 3)
		sum_fixed(d, 3, d->rows, d->tmp);
	else if (d->taps == 4)
		sum_fixed(d, 4, d->rows, d->tmp);
	else
		sum_fixed(d, d->taps, d->rows, d->tmp);
	of_triangle(d->tmp, n);
	narrow(d->tmp, n, d->out);
}

static const struct rows_class CLASSES[] = {
	[AXIS_BOX] = { .across = box_across, .down = box_down },
	[AXIS_WHOLE] = { .across = whole_across, .down = whole_down },
	[AXIS_LINEAR] = { .across = linear_across, .down = linear_down },
	[AXIS_TRIANGLE] = { .across = triangle_across, .down = triangle_down },
};

const struct rows_class *rows_class_plain(enum axis_kind kind)
{
	return &CLASSES[kind];
}

const struct rows_class *rows_class(enum axis_kind kind)
{
	const struct rows_class *fast = rows_class_avx2(kind);

	return fast ? fast : rows_class_plain(kind);
}

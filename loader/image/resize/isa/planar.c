/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of planar.c, on a vector of numbers at a time. */
#include "loader/image/resize/planar.h"
#include "loader/image/resize/planar_class.h"
#include "loader/util/isa_choice.h"
#include "loader/util/shorts.h"

/* For loops over constant numbers of taps. */
#define UNROLL _Pragma("GCC unroll 4")
#define INLINE static inline __attribute__((always_inline))

enum { SIDE = PLANAR_ROWS, HALF = SIDE / 2 };

INLINE void down_taps(const struct planar_down *d, uint32_t taps)
{
	for (uint32_t x = 0; x < d->width; x += SHORTS) {
		const uint8_t *p = d->samples + x;
		shorts sum = { 0 };

		UNROLL
		for (uint32_t k = 0; k < taps; k++, p += d->stride) {
			shorts v = shorts_load_bytes(p) << PLANAR_POINT;
			shorts w = shorts_of_pair(d->weights[k]);

			sum = shorts_add(sum, shorts_scale(v, w));
		}
		shorts_store(d->out + x, sum);
	}
}

static void down(const struct planar_down *d)
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

/*
 * Perfect shuffles transpose a matrix: each step interleaves the first half of
 * its rows with the second half. Eight rows take three steps, sixteen take
 * four.
 */
INLINE void shuffle_eight(const shorts in[HALF], shorts out[HALF])
{
	for (unsigned i = 0; i < HALF / 2; i++) {
		shorts a = in[i], b = in[i + HALF / 2];

		out[2 * i] = shorts_mix_low(a, b);
		out[2 * i + 1] = shorts_mix_high(a, b);
	}
}

/* Eight columns of SHORTS rows. */
INLINE void turn_eight(const int16_t *in, size_t stride, int16_t *out)
{
	shorts a[HALF], b[HALF];

	for (unsigned i = 0; i < HALF; i++)
		a[i] = shorts_load_eights(in + i * stride, stride);
	shuffle_eight(a, b);
	shuffle_eight(b, a);
	shuffle_eight(a, b);
	for (unsigned i = 0; i < HALF; i++)
		shorts_store(out + i * (size_t)PLANAR_ROWS, b[i]);
}

static void turn(const int16_t *in, size_t stride, uint32_t width,
		 planar_column *out)
{
	for (uint32_t x = 0; x < width; x += HALF)
		for (size_t y = 0; y < SIDE; y += SHORTS)
			turn_eight(in + y * stride + x, stride, out[x] + y);
}

INLINE shorts column_sum(const planar_column *in, const uint32_t *w,
			 uint32_t taps, uint32_t y)
{
	shorts sum = { 0 };

	UNROLL
	for (uint32_t k = 0; k < taps; k++)
		sum = shorts_add(sum, shorts_scale(shorts_load(in[k] + y),
						   shorts_of_pair(w[k])));
	return sum;
}

INLINE void across_taps(const struct filter *f, const planar_column *in,
			planar_column *out, uint32_t taps)
{
	const uint32_t *w = f->weights;

	for (uint32_t i = 0; i < f->count; i++, w += taps)
		for (uint32_t y = 0; y < SIDE; y += SHORTS)
			shorts_store(out[i] + y,
				     column_sum(in + f->first[i], w, taps, y));
}

static void across(const struct filter *f, const planar_column *in,
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

INLINE void shuffle_sixteen(const shorts in[SIDE], shorts out[SIDE])
{
	for (unsigned i = 0; i < HALF; i++) {
		shorts a = in[i], b = in[i + HALF];

		out[2 * i] = shorts_mix_low_bytes(a, b);
		out[2 * i + 1] = shorts_mix_high_bytes(a, b);
	}
}

/*
 * Turns PLANAR_COLUMNS columns of SHORTS rows. Vector i has columns i and
 * i + SIDE; of both, each sixteen bytes have the same eight rows.
 */
INLINE void store_rows(const shorts columns[SIDE], uint8_t *out, size_t stride)
{
	shorts a[SIDE], b[SIDE];

	shuffle_sixteen(columns, a);
	shuffle_sixteen(a, b);
	shuffle_sixteen(b, a);
	shuffle_sixteen(a, b);
	for (unsigned i = 0; i < SIDE; i++)
		for (unsigned k = 0; k < SHORTS / HALF; k++)
			shorts_store_eight(
				out + (k * HALF + i % HALF) * stride +
					i / HALF * SIDE,
				b[i], k);
}

INLINE shorts times(shorts v, int coefficient)
{
	return shorts_scale(v, shorts_of(coefficient));
}

INLINE shorts luma_of(const struct planar_colours *c, uint32_t x, uint32_t y)
{
	return shorts_add(shorts_load(c->in[0][x] + y), shorts_of(c->rounding));
}

INLINE shorts chroma_of(const planar_column *in, uint32_t x, uint32_t y)
{
	return shorts_load(in[x] + y) - PLANAR_ZERO_CHROMA;
}

struct rgb {
	shorts red;
	shorts green;
	shorts blue;
};

/* SHORTS rows of a column, from y on. */
INLINE void make_rgb(const struct planar_colours *c, uint32_t x, uint32_t y,
		     struct rgb *out)
{
	shorts luma = luma_of(c, x, y);
	shorts cb = chroma_of(c->in[1], x, y);
	shorts cr = chroma_of(c->in[2], x, y);
	shorts red = cr + times(cr, PLANAR_RED_OF_CR);
	shorts green =
		times(cb, PLANAR_GREEN_OF_CB) + times(cr, PLANAR_GREEN_OF_CR);
	shorts blue = cb + times(cb, PLANAR_BLUE_OF_CB);

	out->red = shorts_add(luma, red) >> PLANAR_POINT;
	out->green = shorts_add(luma, green) >> PLANAR_POINT;
	out->blue = shorts_add(luma, blue) >> PLANAR_POINT;
}

/* PLANAR_COLUMNS columns of SHORTS rows. */
INLINE void color_columns(const struct planar_colours *c, uint32_t x,
			  uint32_t y)
{
	size_t at = y * c->stride + x;
	shorts red[SIDE], green[SIDE], blue[SIDE];

	for (uint32_t i = 0; i < SIDE; i++) {
		struct rgb a, b;

		make_rgb(c, x + i, y, &a);
		make_rgb(c, x + i + SIDE, y, &b);
		red[i] = shorts_pack(a.red, b.red);
		green[i] = shorts_pack(a.green, b.green);
		blue[i] = shorts_pack(a.blue, b.blue);
	}
	store_rows(red, c->out[0] + at, c->stride);
	store_rows(green, c->out[1] + at, c->stride);
	store_rows(blue, c->out[2] + at, c->stride);
}

static void color(const struct planar_colours *c)
{
	for (uint32_t x = 0; x < c->width; x += PLANAR_COLUMNS)
		for (uint32_t y = 0; y < SIDE; y += SHORTS)
			color_columns(c, x, y);
}

INLINE void gray_columns(const struct planar_colours *c, uint32_t x, uint32_t y)
{
	shorts luma[SIDE];

	for (uint32_t i = 0; i < SIDE; i++)
		luma[i] = shorts_pack(luma_of(c, x + i, y) >> PLANAR_POINT,
				      luma_of(c, x + i + SIDE, y) >>
					      PLANAR_POINT);
	store_rows(luma, c->out[0] + y * c->stride + x, c->stride);
}

static void gray(const struct planar_colours *c)
{
	for (uint32_t x = 0; x < c->width; x += PLANAR_COLUMNS)
		for (uint32_t y = 0; y < SIDE; y += SHORTS)
			gray_columns(c, x, y);
}

/* Sample k of an output has pixels from 2 k - 1 or 2 k - 2 on. */
static void pair(const struct shares *shares, uint32_t at, uint32_t taps,
		 int32_t *cells)
{
	ptrdiff_t stride = (ptrdiff_t)shares->stride;
	const int32_t *row = shares->of;

	for (uint32_t k = 0; k < taps; k++, row += 2 * stride, cells += stride)
		for (ptrdiff_t i = 0; i < stride; i++) {
			int32_t a = row[i - 3 * stride];
			int32_t b = row[i - 2 * stride];
			int32_t c = row[i - stride];
			int32_t d = row[i], e = row[i + stride];
			int32_t even = FILTER_NEAR * (b + c) + a + d;
			int32_t odd = FILTER_NEAR * (c + d) + b + e;

			cells[i] = (at + shares->first[i]) & 1 ? odd : even;
		}
}

/* Four outputs. */
typedef int32_t int4 __attribute__((vector_size(16)));
typedef double double4 __attribute__((vector_size(32)));
enum { FOUR = 4 };

INLINE int4 int4_load(const void *p)
{
	int4 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Computes the scale of cells. The quotient is never rounded up to a whole number,
   since it has less than 53 bits before and after the point. */
INLINE void scale_of(const struct filter *f, uint32_t i, uint32_t taps,
		     double4 *scale)
{
	const int32_t *cells = f->cells + i;
	int4 sum = { 0 };

	UNROLL
	for (uint32_t k = 0; k < taps; k++, cells += f->stride)
		sum += int4_load(cells);
	sum -= sum == 0; /* outputs of the padding */
	*scale = 0x1p47 / __builtin_convertvector(sum, double4);
	for (int n = 0; n < FOUR; n++)
		(*scale)[n] = __builtin_floor((*scale)[n]);
}

/* The rounded weights of a tap. */
INLINE int4 weights_of(const int32_t *cells, const double4 *scale)
{
	double4 v = __builtin_convertvector(int4_load(cells), double4) * *scale;

	return __builtin_convertvector((v + 0x1p31) * 0x1p-32, int4);
}

/* Weighs the outputs from i on, tap by tap. */
INLINE void weigh_four(const struct filter *f, uint32_t i, uint32_t taps,
		       int4 *weights)
{
	const int32_t *cells = f->cells + i;
	int4 left = { 0 }, most = { 0 }, largest = { 0 };
	double4 scale;

	left += FILTER_ONE;
	scale_of(f, i, taps, &scale);
	UNROLL
	for (uint32_t k = 0; k < taps; k++, cells += f->stride) {
		int4 w = weights_of(cells, &scale), more = w > most;

		weights[k] = w;
		left -= w;
		most = (w & more) | (most & ~more);
		largest = (more & (int32_t)k) | (largest & ~more);
	}
	UNROLL
	for (uint32_t k = 0; k < taps; k++) {
		int4 w = weights[k] + (left & (largest == (int32_t)k));

		w += w == FILTER_ONE;
		weights[k] = w << 16 | w;
	}
}

INLINE void weigh_taps(struct filter *f, uint32_t taps)
{
	uint32_t *out = f->weights;

	for (uint32_t i = 0; i < f->count; i += FOUR) {
		int4 weights[FILTER_TAPS_MAX];

		weigh_four(f, i, taps, weights);
		UNROLL
		for (int n = 0; n < FOUR; n++)
			UNROLL
		for (uint32_t k = 0; k < taps; k++)
			*out++ = (uint32_t)weights[k][n];
	}
}

static void weigh(struct filter *f)
{
	if (f->taps == 2)
		weigh_taps(f, 2);
	else if (f->taps == 3)
		weigh_taps(f, 3);
	else if (f->taps == 4)
		weigh_taps(f, 4);
	else
		weigh_taps(f, f->taps);
}

const struct planar_class ISA_NAME(planar) = {
	.filter = { .pair = pair, .weigh = weigh },
	.down = down,
	.turn = turn,
	.across = across,
	.color = color,
	.gray = gray,
};

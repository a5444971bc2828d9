/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/grid/resize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/axis.h"
#include "loader/util/scratch.h"

/*
 * Rows of the input that were filtered across last: row i is in slot i % taps,
 * so each is filtered once.
 */
struct grid_resizer {
	struct resampler *rgb;
	struct axis x;
	struct axis y;
	enum axis_kind kind;
	struct scratch line;  /* a row of the input, converted */
	struct scratch slots; /* [y.taps] rows */
	struct scratch rows;  /* [y.taps] pointers to slots, in order */
	struct scratch wx;    /* int32 weights of both axes */
	struct scratch wy;
	struct scratch offsets; /* of the nearest pixels of a row */
	size_t count;		/* values of a row of the result */
	uint32_t channels;
	uint32_t filtered; /* rows below it are in their slots */
};

int grid_resizer_open(struct grid_resizer **out)
{
	struct grid_resizer *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (resampler_open(&r->rgb)) {
		free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void grid_resizer_close(struct grid_resizer *r)
{
	if (!r)
		return;
	resampler_close(r->rgb);
	axis_fini(&r->x);
	axis_fini(&r->y);
	scratch_fini(&r->line);
	scratch_fini(&r->slots);
	scratch_fini(&r->rows);
	scratch_fini(&r->wx);
	scratch_fini(&r->wy);
	scratch_fini(&r->offsets);
	free(r);
}

/* --- nearest --- */

static int build_axes(struct grid_resizer *r, const struct resize *z)
{
	const struct axis_part x = { z->from_width, z->to_width, 0, z->to_width,
				     z->mirror };
	const struct axis_part y = { z->from_height, z->to_height, 0,
				     z->to_height, false };
	int e = axis_build(&r->x, r->kind, &x);

	return e ? e : axis_build(&r->y, r->kind, &y);
}

static int place_columns(struct grid_resizer *r, const struct grid *in)
{
	size_t pixel = grid_pixel_size(in);
	size_t *offsets;

	if (scratch_grow(&r->offsets, r->x.part.count, sizeof(*offsets)))
		return -ENOMEM;
	offsets = r->offsets.p;
	for (uint32_t x = 0; x < r->x.part.count; x++)
		offsets[x] = pixel * (r->x.origin + r->x.first[x]);
	return 0;
}

#define DEFINE_PICK(bits)                                                      \
	static void pick_##bits(const uint8_t *in, const size_t *offsets,      \
				size_t n, uint8_t *out)                        \
	{                                                                      \
		for (size_t x = 0; x < n; x++)                                 \
			memcpy(out + x * ((bits) / 8), in + offsets[x],        \
			       (bits) / 8);                                    \
	}

DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)

static void pick_row(const struct grid *g, const uint8_t *in,
		     const size_t *offsets, uint8_t *out)
{
	size_t pixel = grid_pixel_size(g);

	if (pixel == 1)
		pick_8(in, offsets, g->width, out);
	else if (pixel == 2)
		pick_16(in, offsets, g->width, out);
	else if (pixel == 4)
		pick_32(in, offsets, g->width, out);
	else if (pixel == 8)
		pick_64(in, offsets, g->width, out);
	else
		for (uint32_t x = 0; x < g->width; x++)
			memcpy(out + x * pixel, in + offsets[x], pixel);
}

static int resize_nearest(struct grid_resizer *r, const struct resize *z,
			  const struct grid *in, const struct grid *out)
{
	int e;

	r->kind = AXIS_NEAREST;
	e = build_axes(r, z);
	if (!e)
		e = place_columns(r, in);
	if (e)
		return e;
	for (uint32_t f = 0; f < out->frames; f++) {
		for (uint32_t y = 0; y < out->height; y++)
			pick_row(out,
				 grid_row(in, f, r->y.origin + r->y.first[y]),
				 r->offsets.p, grid_row(out, f, y));
	}
	return 0;
}

/* --- 8-bit RGB: as images --- */

/* A frame whose rows the resampler reads. */
struct frame_rows {
	const struct grid *in;
	uint32_t frame;
	struct rect needs;
};

static int frame_row(void *arg, uint32_t y, const uint8_t **pixels)
{
	const struct frame_rows *f = arg;

	*pixels = grid_row(f->in, f->frame, f->needs.y + y) + 3 * f->needs.x;
	return 0;
}

static int resize_rgb(struct grid_resizer *r, const struct resize *resize,
		      const struct grid *in, const struct grid *out)
{
	int e = 0;

	for (uint32_t f = 0; !e && f < in->frames; f++) {
		struct frame_rows rows = { .in = in, .frame = f };
		const struct row_source source = { frame_row, &rows };
		const struct image to = { grid_row(out, f, 0), out->width,
					  out->height, out->stride };

		e = resample_start(r->rgb, resize, &rows.needs);
		if (!e)
			e = resample_rows(r->rgb, &source, &to);
	}
	return e;
}

/* --- bytes of any channels, in whole numbers --- */

static int unpack_weights(const struct axis *axis, struct scratch *s)
{
	size_t n = (size_t)axis->part.count * axis->taps;
	int32_t *out;

	if (scratch_grow(s, n, sizeof(*out)))
		return -ENOMEM;
	out = s->p;
	for (size_t i = 0; i < n; i++)
		out[i] = axis->kind == AXIS_WHOLE
				 ? 1
				 : axis_weight(axis, axis->weights[i]);
	return 0;
}

static bool is_kernel(enum axis_kind kind)
{
	return kind == AXIS_TRIANGLE || kind == AXIS_CUBIC ||
	       kind == AXIS_LANCZOS;
}

/* Triangles stay within 0 .. 255 by themselves. */
static int32_t of_kernel(int32_t sum)
{
	int32_t v = (sum + (1 << (AXIS_ONE_BITS - 1))) >> AXIS_ONE_BITS;

	return v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v;
}

static void across_fixed(struct grid_resizer *r, const uint8_t *in, void *slot)
{
	const struct axis *x = &r->x;
	const int32_t *w = r->wx.p;
	uint32_t channels = r->channels;
	int32_t *out = slot;

	for (uint32_t i = 0; i < x->part.count; i++, w += x->taps) {
		const uint8_t *p =
			in + ((size_t)x->origin + x->first[i]) * channels;

		for (uint32_t c = 0; c < channels; c++, p++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < x->taps; k++)
				sum += p[(size_t)k * channels] * w[k];
			*out++ = is_kernel(x->kind) ? of_kernel(sum) : sum;
		}
	}
}

/* Rounds to nearest, halves to even; 0 <= v < 2^22. */
static inline float to_whole(float v)
{
	return (v + 0x1p23F) - 0x1p23F;
}

/* Weights below 0 make sums that no number of the type holds. */
static inline float limit(float v, float low, float high)
{
	return v < low ? low : v > high ? high : v;
}

static uint8_t finish_whole(const struct grid_resizer *r, int32_t sum)
{
	float inverse = 1.F / (float)(r->x.taps * r->y.taps);

	if (r->x.taps == 2 && r->y.taps == 2)
		return (uint8_t)((sum + 2) >> 2);
	return (uint8_t)to_whole((float)sum * inverse);
}

static void down_whole(const struct grid_resizer *r, uint8_t *out)
{
	const int32_t *const *rows = r->rows.p;

	for (size_t i = 0; i < r->count; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < r->y.taps; k++)
			sum += rows[k][i];
		out[i] = finish_whole(r, sum);
	}
}

static void down_linear(const struct grid_resizer *r, const int32_t *w,
			uint8_t *out)
{
	const int32_t *const *rows = r->rows.p;

	for (size_t i = 0; i < r->count; i++) {
		int32_t sum = 2;

		for (uint32_t k = 0; k < r->y.taps; k++)
			sum += ((rows[k][i] >> 4) * w[k]) >> 16;
		out[i] = (uint8_t)(sum >> 2);
	}
}

static void down_kernel(const struct grid_resizer *r, const int32_t *w,
			uint8_t *out)
{
	const int32_t *const *rows = r->rows.p;

	for (size_t i = 0; i < r->count; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < r->y.taps; k++)
			sum += rows[k][i] * w[k];
		out[i] = (uint8_t)of_kernel(sum);
	}
}

static void down_fixed(struct grid_resizer *r, uint32_t y, uint8_t *out)
{
	const int32_t *w = (const int32_t *)r->wy.p + (size_t)y * r->y.taps;

	if (r->kind == AXIS_WHOLE)
		down_whole(r, out);
	else if (r->kind == AXIS_LINEAR)
		down_linear(r, w, out);
	else
		down_kernel(r, w, out);
}

/* --- all other numbers, in float32 --- */

static void across_real(struct grid_resizer *r, const float *in, float *out)
{
	const struct axis *x = &r->x;
	const union weight *w = x->weights;
	uint32_t channels = r->channels;

	for (uint32_t i = 0; i < x->part.count; i++, w += x->taps) {
		const float *p =
			in + ((size_t)x->origin + x->first[i]) * channels;

		for (uint32_t c = 0; c < channels; c++, p++) {
			float sum = p[0] * w[0].real;

			for (uint32_t k = 1; k < x->taps; k++)
				sum += p[(size_t)k * channels] * w[k].real;
			*out++ = sum;
		}
	}
}

/* The sums are left in the line. */
static void down_real(struct grid_resizer *r, uint32_t y)
{
	const union weight *w = r->y.weights + (size_t)y * r->y.taps;
	const float *const *rows = r->rows.p;
	float *sums = r->line.p;

	for (size_t i = 0; i < r->count; i++)
		sums[i] = rows[0][i] * w[0].real;
	for (uint32_t k = 1; k < r->y.taps; k++) {
		const float *row = rows[k];
		float weight = w[k].real;

		for (size_t i = 0; i < r->count; i++)
			sums[i] += row[i] * weight;
	}
}

static void load_row(enum dtype dtype, const uint8_t *in, float *out, size_t n)
{
	if (dtype != DTYPE_U2) {
		dtype_convert(dtype, in, DTYPE_F4, out, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (float)load16(in + 2 * i);
}

static void store_row(enum dtype dtype, const float *in, uint8_t *out, size_t n)
{
	if (dtype == DTYPE_U1)
		for (size_t i = 0; i < n; i++)
			out[i] = (uint8_t)to_whole(limit(in[i], 0, UINT8_MAX));
	else if (dtype == DTYPE_U2)
		for (size_t i = 0; i < n; i++)
			store16(out + 2 * i, (uint16_t)to_whole(limit(
						     in[i], 0, UINT16_MAX)));
	else
		dtype_convert(DTYPE_F4, in, dtype, out, n);
}

/* --- rows of any of them --- */

static bool is_real(enum axis_kind kind)
{
	return kind == AXIS_BOX || kind >= AXIS_LINEAR_REAL;
}

static void filter_row(struct grid_resizer *r, const struct grid *in,
		       const uint8_t *row, void *slot)
{
	if (!is_real(r->kind)) {
		across_fixed(r, row, slot);
		return;
	}
	load_row(in->dtype, row, r->line.p, (size_t)in->width * in->channels);
	across_real(r, r->line.p, slot);
}

static void gather_rows(struct grid_resizer *r, const struct grid *in,
			uint32_t frame, uint32_t first)
{
	uint32_t taps = r->y.taps;
	void **rows = r->rows.p;

	if (r->filtered < first)
		r->filtered = first;
	for (; r->filtered < first + taps; r->filtered++)
		filter_row(r, in, grid_row(in, frame, r->filtered),
			   (float *)r->slots.p + r->filtered % taps * r->count);
	for (uint32_t k = 0; k < taps; k++)
		rows[k] = (float *)r->slots.p + (first + k) % taps * r->count;
}

static void resize_frame(struct grid_resizer *r, const struct grid *in,
			 uint32_t frame, const struct grid *out)
{
	r->filtered = 0;
	for (uint32_t y = 0; y < out->height; y++) {
		uint8_t *to = grid_row(out, frame, y);

		gather_rows(r, in, frame, r->y.origin + r->y.first[y]);
		if (!is_real(r->kind)) {
			down_fixed(r, y, to);
			continue;
		}
		down_real(r, y);
		store_row(out->dtype, r->line.p, to, r->count);
	}
}

/* As images choose it; numbers other than bytes have no whole weights. */
static enum axis_kind kind_of(const struct resize *z, enum dtype dtype)
{
	static const enum axis_kind reals[INTERPOLATIONS] = {
		[INTERPOLATION_BILINEAR] = AXIS_TRIANGLE_REAL,
		[INTERPOLATION_BICUBIC] = AXIS_CUBIC_REAL,
		[INTERPOLATION_LANCZOS] = AXIS_LANCZOS_REAL,
	};

	if (dtype == DTYPE_U1)
		return resample_kind(z);
	if (reals[z->how] != AXIS_NONE)
		return reals[z->how];
	return z->from_width < z->to_width || z->from_height < z->to_height
		       ? AXIS_LINEAR_REAL
		       : AXIS_BOX;
}

/* Memory for both passes. A slot's number is a float or an int32. */
static int reserve(struct grid_resizer *r, const struct grid *in)
{
	uint64_t wide = max_u64(in->width, r->x.part.count), n;
	int e;

	r->channels = in->channels;
	r->count = (size_t)r->x.part.count * in->channels;
	if (!mul_ok(wide, in->channels, &wide) ||
	    !mul_ok(r->y.taps, r->count, &n))
		return -ENOMEM;
	e = scratch_grow(&r->line, wide, sizeof(float));
	if (!e)
		e = scratch_grow(&r->slots, n, sizeof(float));
	if (!e)
		e = scratch_grow(&r->rows, r->y.taps, sizeof(void *));
	if (e || is_real(r->kind))
		return e;
	e = unpack_weights(&r->x, &r->wx);
	return e ? e : unpack_weights(&r->y, &r->wy);
}

static int build(struct grid_resizer *r, const struct resize *z,
		 const struct grid *in)
{
	int e;

	r->kind = kind_of(z, in->dtype);
	e = build_axes(r, z);
	return e ? e : reserve(r, in);
}

int grid_resize(struct grid_resizer *r, enum interpolation how, bool mirror,
		const struct grid *in, const struct grid *out)
{
	const struct resize z = {
		.how = how,
		.from_width = in->width,
		.from_height = in->height,
		.to_width = out->width,
		.to_height = out->height,
		.part = { 0, 0, out->width, out->height },
		.mirror = mirror,
	};
	int e;

	if (how == INTERPOLATION_NEAREST)
		return resize_nearest(r, &z, in, out);
	if (in->dtype == DTYPE_U1 && in->channels == 3)
		return resize_rgb(r, &z, in, out);
	e = build(r, &z, in);
	for (uint32_t f = 0; !e && f < out->frames; f++)
		resize_frame(r, in, f, out);
	return e;
}

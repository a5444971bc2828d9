/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/resample.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/axis.h"
#include "loader/image/resize/rows.h"
#include "loader/util/exact_math.h"
#include "loader/util/scratch.h"

enum {
	CHANNELS = 3,
	/* The sum of this many bytes fits 31 bits. OpenCV's sums overflow
	   beyond it. */
	WHOLE_AREA_MAX = 1 << 23,
};

/*
 * A ring of the rows that were filtered across last. Row i of the input is in
 * slot i % taps, so each row is filtered once.
 */
struct resampler {
	const struct rows_class *class;
	struct axis x;
	struct axis y;
	struct scratch prepared; /* by the class */
	struct scratch numbers;	 /* tmp, then the slots */
	struct scratch pointers; /* rows */
	union cell *tmp;	 /* scratch for one row */
	union cell *slots;	 /* [y.taps] of slot_size numbers */
	size_t slot_size;
	const union cell **rows; /* [y.taps] of one output row */
	uint32_t filtered;	 /* input rows below it are filtered */
	uint32_t next;		 /* output row */
};

int resampler_open(struct resampler **out)
{
	struct resampler *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*out = r;
	return 0;
}

void resampler_close(struct resampler *r)
{
	if (!r)
		return;
	axis_fini(&r->x);
	axis_fini(&r->y);
	scratch_fini(&r->prepared);
	scratch_fini(&r->numbers);
	scratch_fini(&r->pointers);
	free(r);
}

static bool is_whole(uint32_t from, uint32_t to)
{
	double scale = axis_scale(from, to);

	return __builtin_fabs(scale - exact_round(scale)) < __DBL_EPSILON__;
}

/* Both axes have the same kind, of AREA chosen as OpenCV does. */
enum axis_kind resample_kind(const struct resize *z)
{
	static const enum axis_kind kinds[INTERPOLATIONS] = {
		[INTERPOLATION_BILINEAR] = AXIS_TRIANGLE,
		[INTERPOLATION_NEAREST] = AXIS_NEAREST,
		[INTERPOLATION_BICUBIC] = AXIS_CUBIC,
		[INTERPOLATION_LANCZOS] = AXIS_LANCZOS,
	};

	if (kinds[z->how] != AXIS_NONE)
		return kinds[z->how];
	if (z->from_width < z->to_width || z->from_height < z->to_height)
		return AXIS_LINEAR;
	if (!is_whole(z->from_width, z->to_width) ||
	    !is_whole(z->from_height, z->to_height))
		return AXIS_BOX;

	uint64_t columns = z->from_width / z->to_width;
	uint64_t rows = z->from_height / z->to_height;

	return columns * rows <= WHOLE_AREA_MAX ? AXIS_WHOLE : AXIS_BOX;
}

static int reserve_rows(struct resampler *r)
{
	uint64_t row =
		max_u64(rows_size(r->x.span), rows_size(r->x.part.count));
	uint64_t n;
	int e;

	r->slot_size = rows_size(r->x.part.count);
	if (!mul_ok(r->y.taps, r->slot_size, &n) || !add_ok(n, row, &n))
		return -ENOMEM;
	e = scratch_grow(&r->numbers, n, sizeof(*r->tmp));
	if (!e)
		e = scratch_grow(&r->pointers, r->y.taps, sizeof(void *));
	if (e)
		return e;
	if (r->class->prepare) {
		n = r->class->prepared_size(&r->x);
		e = scratch_grow(&r->prepared, n, 1);
		if (e)
			return e;
		r->class->prepare(&r->x, r->prepared.p);
	}
	r->tmp = r->numbers.p;
	r->slots = r->tmp + row;
	r->rows = r->pointers.p;
	return 0;
}

int resample_start(struct resampler *r, const struct resize *resize,
		   struct rect *needs)
{
	const struct rect *part = &resize->part;
	const struct axis_part x = { resize->from_width, resize->to_width,
				     part->x, part->width, resize->mirror };
	const struct axis_part y = { resize->from_height, resize->to_height,
				     part->y, part->height, false };
	enum axis_kind kind = resample_kind(resize);
	int e;

	e = axis_build(&r->x, kind, &x);
	if (!e)
		e = axis_build(&r->y, kind, &y);
	if (e)
		return e;
	r->class = rows_class(&r->x);
	e = reserve_rows(r);
	if (e)
		return e;
	r->filtered = 0;
	r->next = 0;
	*needs =
		(struct rect){ r->x.origin, r->y.origin, r->x.span, r->y.span };
	return 0;
}

/* Points r->rows at input rows [first, first + y.taps), filtered across. */
static int gather_rows(struct resampler *r, const struct row_source *source,
		       uint32_t first)
{
	uint32_t taps = r->y.taps;
	const uint8_t *pixels;
	struct rows_across across = {
		.x = &r->x,
		.prepared = r->prepared.p,
		.tmp = r->tmp,
	};

	if (r->filtered < first)
		r->filtered = first;
	for (; r->filtered < first + taps; r->filtered++) {
		int e = source->row(source->arg, r->filtered, &pixels);

		if (e)
			return e;
		across.in = pixels;
		across.out = r->slots + r->filtered % taps * r->slot_size;
		r->class->across(&across);
	}
	for (uint32_t k = 0; k < taps; k++)
		r->rows[k] = r->slots + (first + k) % taps * r->slot_size;
	return 0;
}

int resample_rows(struct resampler *r, const struct row_source *source,
		  const struct image *out)
{
	for (uint32_t i = 0; i < out->height; i++, r->next++) {
		struct rows_down d = {
			.x = &r->x,
			.taps = r->y.taps,
			.w = r->y.weights + (size_t)r->next * r->y.taps,
			.rows = r->rows,
			.tmp = r->tmp,
			.out = out->pixels + i * out->stride,
		};
		int e = gather_rows(r, source, r->y.first[r->next]);

		if (e)
			return e;
		r->class->down(&d);
	}
	return 0;
}

static void copy_image(const struct image *in, struct image *out)
{
	for (uint32_t y = 0; y < out->height; y++)
		memcpy(out->pixels + y * out->stride,
		       in->pixels + y * in->stride,
		       (size_t)out->width * CHANNELS);
}

static int image_row(void *arg, uint32_t y, const uint8_t **pixels)
{
	const struct image *image = arg;

	*pixels = image->pixels + y * image->stride;
	return 0;
}

int resample(struct resampler *r, enum interpolation how,
	     const struct image *in, struct image *out)
{
	struct resize resize = {
		.how = how,
		.from_width = in->width,
		.from_height = in->height,
		.to_width = out->width,
		.to_height = out->height,
		.part = { 0, 0, out->width, out->height },
	};
	struct image from = *in;
	struct rect needs;
	int e;

	if (in->width == out->width && in->height == out->height) {
		copy_image(in, out);
		return 0;
	}
	e = resample_start(r, &resize, &needs);
	if (e)
		return e;
	from.pixels += needs.y * in->stride + (size_t)needs.x * CHANNELS;
	return resample_rows(r, &(struct row_source){ image_row, &from }, out);
}

/*
 * FFCV's arithmetic, in double. FFCV rounds thin sides down to 0; this does
 * not.
 */
static uint32_t scale_side(uint32_t side, double ratio)
{
	uint32_t v = (uint32_t)floor(ratio * side);

	return v ? v : 1;
}

void resample_limit(const struct image *in, uint32_t limit, struct image *out)
{
	uint32_t longer = in->width > in->height ? in->width : in->height;
	double ratio = (double)limit / longer;

	out->width = scale_side(in->width, ratio);
	out->height = scale_side(in->height, ratio);
	out->stride = (size_t)out->width * CHANNELS;
}

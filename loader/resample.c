/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/resample.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "loader/axis.h"
#include "loader/real.h"
#include "loader/rows.h"
#include "loader/scratch.h"

enum {
	CHANNELS = 3,
	/* Sums of as many bytes fit 31 bits; OpenCV's overflow beyond. */
	WHOLE_AREA_MAX = 1 << 23,
};

/*
 * The rows that were filtered across last, in a ring: row i of the input is in
 * slot i % taps, so an output's rows are all there, each filtered once.
 */
struct resampler {
	struct axis x;
	struct axis y;
	struct scratch numbers;	 /* tmp, then the slots */
	struct scratch pointers; /* rows */
	union cell *tmp;	 /* a row whose sums are not complete */
	union cell *slots;	 /* [y.taps] of slot_size numbers */
	size_t slot_size;
	const union cell **rows; /* [y.taps] of one output row */
	uint32_t filtered;	 /* input rows below it have been */
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
	scratch_fini(&r->numbers);
	scratch_fini(&r->pointers);
	free(r);
}

static bool is_whole(uint32_t from, uint32_t to)
{
	double scale = axis_scale(from, to);

	return __builtin_fabs(scale - real_round(scale)) < __DBL_EPSILON__;
}

/* Both axes are of one kind: which, is decided as OpenCV does. */
static enum axis_kind kind_of(enum interpolation how, const struct image *in,
			      const struct image *out)
{
	if (how == INTERPOLATION_BILINEAR)
		return AXIS_TRIANGLE;
	if (in->width < out->width || in->height < out->height)
		return AXIS_LINEAR;
	if (!is_whole(in->width, out->width) ||
	    !is_whole(in->height, out->height))
		return AXIS_BOX;

	uint64_t columns = in->width / out->width;
	uint64_t rows = in->height / out->height;

	return columns * rows <= WHOLE_AREA_MAX ? AXIS_WHOLE : AXIS_BOX;
}

static int make_room(struct resampler *r, uint32_t in_width)
{
	uint64_t row = max_u64(rows_size(in_width), rows_size(r->x.to));
	uint64_t n;
	int e;

	r->slot_size = rows_size(r->x.to);
	if (!mul_ok(r->y.taps, r->slot_size, &n) || !add_ok(n, row, &n))
		return -ENOMEM;
	e = scratch_grow(&r->numbers, n, sizeof(*r->tmp));
	if (!e)
		e = scratch_grow(&r->pointers, r->y.taps, sizeof(void *));
	if (e)
		return e;
	r->tmp = r->numbers.p;
	r->slots = r->tmp + row;
	r->rows = r->pointers.p;
	return 0;
}

static int prepare(struct resampler *r, enum axis_kind kind,
		   const struct image *in, const struct image *out)
{
	int e = axis_build(&r->x, kind, in->width, out->width);

	if (!e)
		e = axis_build(&r->y, kind, in->height, out->height);
	if (!e)
		e = make_room(r, in->width);
	r->filtered = 0;
	return e;
}

/* Points r->rows at input rows [first, first + y.taps), filtered across. */
static void gather(struct resampler *r, const struct rows_class *class,
		   const struct image *in, uint32_t first)
{
	uint32_t taps = r->y.taps;

	if (r->filtered < first)
		r->filtered = first;
	for (; r->filtered < first + taps; r->filtered++)
		class->across(&r->x, in->pixels + r->filtered * in->stride,
			      r->tmp,
			      r->slots + r->filtered % taps * r->slot_size);
	for (uint32_t k = 0; k < taps; k++)
		r->rows[k] = r->slots + (first + k) % taps * r->slot_size;
}

static void copy(const struct image *in, struct image *out)
{
	for (uint32_t y = 0; y < out->height; y++)
		memcpy(out->pixels + y * out->stride,
		       in->pixels + y * in->stride,
		       (size_t)out->width * CHANNELS);
}

int resample(struct resampler *r, enum interpolation how,
	     const struct image *in, struct image *out)
{
	if (in->width == out->width && in->height == out->height) {
		copy(in, out);
		return 0;
	}

	enum axis_kind kind = kind_of(how, in, out);
	const struct rows_class *class = rows_class(kind);
	int e = prepare(r, kind, in, out);

	if (e)
		return e;
	for (uint32_t i = 0; i < out->height; i++) {
		struct rows_down d = {
			.x = &r->x,
			.taps = r->y.taps,
			.w = r->y.weights + (size_t)i * r->y.taps,
			.rows = r->rows,
			.tmp = r->tmp,
		};

		gather(r, class, in, r->y.first[i]);
		class->down(&d, out->pixels + i * out->stride);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/axis.h"

#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/util/exact_math.h"

/* OpenCV ignores a pixel if a box covers less than this part of it. */
static const double BOX_LEAST = 1e-3;

static const double PI = 3.14159265358979323846;

enum {
	LINEAR_ONE = 1 << 11,
	KERNEL_ONE = 1 << AXIS_ONE_BITS,
	/* Weights that are kept until their sum is known; of more, all are
	   computed again. */
	KEPT_MAX = 64,
};

/* A filter of Pillow, as wide as the reduction if a side shrinks. */
struct kernel {
	double support; /* half the width */
	double (*at)(double x);
};

/* The functions of a kind. weigh() sets weights[0 .. span.n). */
struct axis_class {
	double (*scale)(uint32_t from, uint32_t to);
	/* NULL: set_nearest() */
	struct axis_span (*span)(const struct axis *axis, uint32_t i);
	void (*weigh)(const struct axis *axis, uint32_t i,
		      struct axis_span span, union weight *weights);
	const struct kernel *kernel;
	void (*put)(double w, union weight *out); /* of a kernel */
};

double axis_scale(uint32_t from, uint32_t to)
{
	return 1. / ((double)to / from);
}

static double ratio(uint32_t from, uint32_t to)
{
	return (double)from / to;
}

/* x is not negative, and below 2^32. */
static uint32_t floor_u32(double x)
{
	return (uint32_t)x;
}

static uint32_t ceil_u32(double x)
{
	uint32_t n = (uint32_t)x;

	return n + (n < x);
}

static double min_double(double a, double b)
{
	return a < b ? a : b;
}

/*
 * The part [begin, end) of the input: pixels [head, last) whole, and a part of
 * the pixel at either side.
 */
struct box {
	double begin;
	double end;
	double size;
	uint32_t head;
	uint32_t last;
};

static struct box box_at(const struct axis *axis, uint32_t i)
{
	double scale = axis->scale;
	double begin = i * scale;
	double end = begin + scale;
	uint32_t last = (uint32_t)min_u64(floor_u32(end), axis->part.from - 1);
	uint32_t head = (uint32_t)min_u64(ceil_u32(begin), last);

	return (struct box){
		.begin = begin,
		.end = end,
		.size = min_double(scale, axis->part.from - begin),
		.head = head,
		.last = last,
	};
}

static bool box_has_head(const struct box *b)
{
	return b->head - b->begin > BOX_LEAST;
}

static bool box_has_last(const struct box *b)
{
	return b->end - b->last > BOX_LEAST;
}

static struct axis_span box_span(const struct axis *axis, uint32_t i)
{
	struct box b = box_at(axis, i);
	uint32_t first = b.head - box_has_head(&b);

	return (struct axis_span){ first, b.last + box_has_last(&b) - first };
}

static void box_weigh(const struct axis *axis, uint32_t i,
		      struct axis_span span, union weight *weights)
{
	struct box b = box_at(axis, i);
	float one = (float)(1. / b.size);

	for (uint32_t k = 0; k < span.n; k++)
		weights[k].real = one;
	if (box_has_head(&b))
		weights[0].real = (float)((b.head - b.begin) / b.size);
	if (box_has_last(&b)) {
		double part = min_double(b.end - b.last, 1);

		part = min_double(part, b.size);
		weights[span.n - 1].real = (float)(part / b.size);
	}
}

static struct axis_span whole_span(const struct axis *axis, uint32_t i)
{
	uint32_t n = axis->part.from / axis->part.to;

	return (struct axis_span){ i * n, n };
}

static void no_weights(const struct axis *axis, uint32_t i,
		       struct axis_span span, union weight *weights)
{
	(void)axis;
	(void)i;
	(void)span;
	(void)weights;
}

static struct axis_span linear_span(const struct axis *axis, uint32_t i)
{
	/* OpenCV multiplies by 1 / (to / from), which rounds twice. For one
	   pair of sizes in forty that takes a pixel too far left somewhere. */
	double at = i * axis->scale;
	uint32_t first = (uint32_t)min_u64(floor_u32(at), axis->part.from - 1);

	return (struct axis_span){ first, first + 1 < axis->part.from ? 2 : 1 };
}

/* The share of the second pixel. */
static float linear_share(const struct axis *axis, uint32_t i,
			  struct axis_span span)
{
	float f = (float)((i + 1.) - (span.first + 1.) * axis->inverse);

	return f <= 0 || span.n == 1 ? 0 : f - (float)floor_u32(f);
}

static void linear_weigh_real(const struct axis *axis, uint32_t i,
			      struct axis_span span, union weight *weights)
{
	float f = linear_share(axis, i, span);

	weights[0].real = 1.f - f;
	if (span.n == 2)
		weights[1].real = f;
}

static void linear_weigh(const struct axis *axis, uint32_t i,
			 struct axis_span span, union weight *weights)
{
	float f = linear_share(axis, i, span);

	weights[0].fixed = (int32_t)exact_round((1.f - f) * LINEAR_ONE);
	if (span.n == 2)
		weights[1].fixed = (int32_t)exact_round(f * LINEAR_ONE);
}

/* --- kernels ------------------------------------------------------------- */

static double triangle_at(double x)
{
	x = __builtin_fabs(x);
	return x < 1 ? 1 - x : 0;
}

/* The cubic kernel of Keys, with a = -1/2. */
static double cubic_at(double x)
{
	x = __builtin_fabs(x);
	if (x < 1)
		return (1.5 * x - 2.5) * x * x + 1;
	return x < 2 ? -0.5 * (((x - 5) * x + 8) * x - 4) : 0;
}

static double sinc(double x)
{
	return x == 0 ? 1 : exact_sine(x / 2) / (x * PI);
}

/* A sinc within a wider one. */
static double lanczos_at(double x)
{
	return __builtin_fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct kernel TRIANGLE = { 1, triangle_at };
static const struct kernel CUBIC = { 2, cubic_at };
static const struct kernel LANCZOS = { 3, lanczos_at };

/* By how much a kernel is widened. */
static double stretch_of(const struct axis *axis)
{
	return axis->scale < 1 ? 1 : axis->scale;
}

static double centre_of(const struct axis *axis, uint32_t i)
{
	return (i + 0.5) * axis->scale;
}

static struct axis_span kernel_span(const struct axis *axis, uint32_t i)
{
	double center = centre_of(axis, i);
	double support = axis->class->kernel->support * stretch_of(axis);
	double begin = center - support + 0.5;
	uint32_t first = begin < 0 ? 0 : floor_u32(begin);
	uint32_t end = floor_u32(center + support + 0.5);

	return (struct axis_span){
		first, (uint32_t)min_u64(end, axis->part.from) - first
	};
}

static void kernel_weigh(const struct axis *axis, uint32_t i,
			 struct axis_span span, union weight *weights)
{
	const struct axis_class *class = axis->class;
	double center = centre_of(axis, i);
	double inverse = 1. / stretch_of(axis);
	double sum = 0, kept[KEPT_MAX];

	for (uint32_t k = 0; k < span.n; k++) {
		double x = k + (double)span.first - center + 0.5;
		double v = class->kernel->at(x * inverse);

		kept[k % KEPT_MAX] = v;
		sum += v;
	}
	for (uint32_t k = 0; k < span.n; k++) {
		double x = k + (double)span.first - center + 0.5;
		double v = span.n <= KEPT_MAX ? kept[k]
					      : class->kernel->at(x * inverse);

		class->put(v / sum, &weights[k]);
	}
}

/* 2^22 is the only weight whose b is above 32767. */
static void put_pair(double w, union weight *out)
{
	int32_t weight = (int32_t)(0.5 + w * KERNEL_ONE);
	int32_t upper = (int32_t)min_u64((uint64_t)weight >> 7, INT16_MAX);

	out->fixed = upper << 16 | (weight - (upper << 7));
}

/*
 * A weight is above 1 where a part of a kernel below 0 is outside of the image,
 * but below 1.3: the part above 0 is never outside.
 */
static void put_signed(double w, union weight *out)
{
	int32_t weight = (int32_t)(w * KERNEL_ONE + (w < 0 ? -0.5 : 0.5));
	int32_t upper = (weight + 128) >> 8;
	uint32_t lower = (uint16_t)(weight - upper * 256);

	out->fixed = (int32_t)((uint32_t)upper << 16 | lower);
}

static void put_real(double w, union weight *out)
{
	out->real = (float)w;
}

int32_t axis_weight(const struct axis *axis, union weight weight)
{
	if (!axis->class->kernel)
		return weight.fixed;
	return axis_pair(weight, axis->kind == AXIS_TRIANGLE ? 128 : 256);
}

static const struct axis_class CLASSES[] = {
	[AXIS_BOX] = { axis_scale, box_span, box_weigh, NULL, NULL },
	[AXIS_WHOLE] = { ratio, whole_span, no_weights, NULL, NULL },
	[AXIS_LINEAR] = { ratio, linear_span, linear_weigh, NULL, NULL },
	[AXIS_TRIANGLE] = { ratio, kernel_span, kernel_weigh, &TRIANGLE,
			    put_pair },
	[AXIS_NEAREST] = { ratio, NULL, no_weights, NULL, NULL },
	[AXIS_CUBIC] = { ratio, kernel_span, kernel_weigh, &CUBIC, put_signed },
	[AXIS_LANCZOS] = { ratio, kernel_span, kernel_weigh, &LANCZOS,
			   put_signed },
	[AXIS_LINEAR_REAL] = { ratio, linear_span, linear_weigh_real, NULL,
			       NULL },
	[AXIS_TRIANGLE_REAL] = { ratio, kernel_span, kernel_weigh, &TRIANGLE,
				 put_real },
	[AXIS_CUBIC_REAL] = { ratio, kernel_span, kernel_weigh, &CUBIC,
			      put_real },
	[AXIS_LANCZOS_REAL] = { ratio, kernel_span, kernel_weigh, &LANCZOS,
				put_real },
};

/* --- axes ---------------------------------------------------------------- */

/* The number, in the whole result, of the axis' output i. */
static uint32_t output_at(const struct axis_part *part, uint32_t i)
{
	return part->begin + (part->mirror ? part->count - 1 - i : i);
}

/*
 * Pillow adds the scale from pixel to pixel. The sums are rounded, and that
 * decides about a center that lies between two pixels.
 */
static void set_nearest(struct axis *axis)
{
	const struct axis_part *part = &axis->part;
	double at = axis->scale * 0.5;

	for (uint32_t i = 0; i < part->begin; i++)
		at += axis->scale;
	for (uint32_t i = 0; i < part->count; i++, at += axis->scale) {
		uint32_t k = part->mirror ? part->count - 1 - i : i;

		axis->spans[k] = (struct axis_span){
			(uint32_t)min_u64(floor_u32(at), part->from - 1), 1
		};
	}
}

static void set_spans(struct axis *axis)
{
	if (!axis->class->span) {
		set_nearest(axis);
		return;
	}
	for (uint32_t i = 0; i < axis->part.count; i++)
		axis->spans[i] =
			axis->class->span(axis, output_at(&axis->part, i));
}

/*
 * Makes all spans as long as the longest. A span that would end past the input
 * begins earlier, with weights of 0.
 */
static void measure_axis(struct axis *axis)
{
	uint32_t low = UINT32_MAX, high = 0;

	axis->taps = 1;
	for (uint32_t i = 0; i < axis->part.count; i++) {
		struct axis_span s = axis->spans[i];

		axis->taps = (uint32_t)max_u64(axis->taps, s.n);
		low = (uint32_t)min_u64(low, s.first);
		high = (uint32_t)max_u64(high, s.first);
	}
	high = (uint32_t)min_u64(high, axis->part.from - axis->taps);
	axis->origin = (uint32_t)min_u64(low, high);
	axis->span = high + axis->taps - axis->origin;
}

static void fill_weights(struct axis *axis)
{
	uint32_t taps = axis->taps, last = axis->part.from - taps;

	for (uint32_t i = 0; i < axis->part.count; i++) {
		union weight *w = axis->weights + (size_t)i * taps;
		struct axis_span span = axis->spans[i];
		uint32_t first = (uint32_t)min_u64(span.first, last);

		memset(w, 0, taps * sizeof(*w));
		axis->class->weigh(axis, output_at(&axis->part, i), span,
				   w + (span.first - first));
		axis->first[i] = first - axis->origin;
	}
}

static bool is_blend(const struct axis *axis)
{
	if (axis->taps != 2 || axis->part.to < axis->part.from)
		return false;
	for (uint32_t i = 0; i < axis->part.count; i++) {
		const union weight *w = axis->weights + (size_t)i * 2;

		if (axis_weight(axis, w[0]) + axis_weight(axis, w[1]) !=
		    KERNEL_ONE)
			return false;
	}
	return true;
}

static bool same_part(const struct axis_part *a, const struct axis_part *b)
{
	return a->from == b->from && a->to == b->to && a->begin == b->begin &&
	       a->count == b->count && a->mirror == b->mirror;
}

int axis_build(struct axis *axis, enum axis_kind kind,
	       const struct axis_part *part)
{
	uint32_t n = part->count;
	int r;

	if (axis->kind == kind && same_part(&axis->part, part))
		return 0;
	axis->kind = AXIS_NONE;
	axis->part = *part;
	axis->class = &CLASSES[kind];
	axis->scale = axis->class->scale(part->from, part->to);
	axis->inverse = ratio(part->to, part->from);
	r = scratch_grow(&axis->memory[0], n,
			 sizeof(uint32_t) + sizeof(struct axis_span));
	if (r)
		return r;
	axis->spans = axis->memory[0].p;
	axis->first = (uint32_t *)(axis->spans + n);
	set_spans(axis);
	measure_axis(axis);
	r = scratch_grow(&axis->memory[1], (uint64_t)n * axis->taps,
			 sizeof(union weight));
	if (r)
		return r;
	axis->weights = axis->memory[1].p;
	fill_weights(axis);
	axis->kind = kind;
	axis->is_blend = kind == AXIS_TRIANGLE && is_blend(axis);
	return 0;
}

void axis_fini(struct axis *axis)
{
	scratch_fini(&axis->memory[0]);
	scratch_fini(&axis->memory[1]);
	*axis = (struct axis){ 0 };
}

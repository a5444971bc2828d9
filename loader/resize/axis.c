/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/resize/axis.h"

#include <stdbool.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/util/exact_math.h"

/* OpenCV ignores a pixel if a box covers less than this part of it. */
static const double BOX_LEAST = 1e-3;

enum {
	LINEAR_ONE = 1 << 11,
	TRIANGLE_ONE = 1 << 22,
};

/* The functions of a kind. weigh() sets weights[0 .. span.n). */
struct axis_class {
	double (*scale)(uint32_t from, uint32_t to);
	struct axis_span (*span)(const struct axis *axis, uint32_t i);
	void (*weigh)(const struct axis *axis, uint32_t i,
		      struct axis_span span, union weight *weights);
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
 * The part [begin, end) of the input: pixels [head, tail) whole, and a part of
 * the pixel at either side.
 */
struct box {
	double begin;
	double end;
	double size;
	uint32_t head;
	uint32_t tail;
};

static struct box box_at(const struct axis *axis, uint32_t i)
{
	double scale = axis->scale;
	double begin = i * scale;
	double end = begin + scale;
	uint32_t tail = (uint32_t)min_u64(floor_u32(end), axis->part.from - 1);
	uint32_t head = (uint32_t)min_u64(ceil_u32(begin), tail);

	return (struct box){
		.begin = begin,
		.end = end,
		.size = min_double(scale, axis->part.from - begin),
		.head = head,
		.tail = tail,
	};
}

static bool box_has_head(const struct box *b)
{
	return b->head - b->begin > BOX_LEAST;
}

static bool box_has_tail(const struct box *b)
{
	return b->end - b->tail > BOX_LEAST;
}

static struct axis_span box_span(const struct axis *axis, uint32_t i)
{
	struct box b = box_at(axis, i);
	uint32_t first = b.head - box_has_head(&b);

	return (struct axis_span){ first, b.tail + box_has_tail(&b) - first };
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
	if (box_has_tail(&b)) {
		double part = min_double(b.end - b.tail, 1);

		part = min_double(part, b.size);
		weights[span.n - 1].real = (float)(part / b.size);
	}
}

static struct axis_span whole_span(const struct axis *axis, uint32_t i)
{
	uint32_t n = axis->part.from / axis->part.to;

	return (struct axis_span){ i * n, n };
}

static void whole_weigh(const struct axis *axis, uint32_t i,
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

/* Half the width of the triangle. */
static double triangle_support(const struct axis *axis)
{
	return axis->scale < 1 ? 1 : axis->scale;
}

static double triangle_centre(const struct axis *axis, uint32_t i)
{
	return (i + 0.5) * axis->scale;
}

static struct axis_span triangle_span(const struct axis *axis, uint32_t i)
{
	double centre = triangle_centre(axis, i);
	double support = triangle_support(axis);
	double begin = centre - support + 0.5;
	uint32_t first = begin < 0 ? 0 : floor_u32(begin);
	uint32_t end = floor_u32(centre + support + 0.5);

	return (struct axis_span){
		first, (uint32_t)min_u64(end, axis->part.from) - first
	};
}

static double triangle_at(double x)
{
	x = __builtin_fabs(x);
	return x < 1 ? 1 - x : 0;
}

/*
 * Packs a weight as two 16-bit numbers a + 128 b. 2^22 is the only weight whose
 * b is above 32767.
 */
static int32_t pair_of(int32_t weight)
{
	int32_t upper = (int32_t)min_u64((uint64_t)weight >> 7, INT16_MAX);

	return upper << 16 | (weight - (upper << 7));
}

static void weigh_triangle(const struct axis *axis, uint32_t i,
			   struct axis_span span,
			   void (*put)(double w, union weight *out),
			   union weight *weights)
{
	double centre = triangle_centre(axis, i);
	double inverse = 1. / triangle_support(axis);
	double sum = 0;

	for (uint32_t k = 0; k < span.n; k++) {
		double x = k + (double)span.first - centre + 0.5;

		sum += triangle_at(x * inverse);
	}
	for (uint32_t k = 0; k < span.n; k++) {
		double x = k + (double)span.first - centre + 0.5;

		put(triangle_at(x * inverse) / sum, &weights[k]);
	}
}

static void put_pair(double w, union weight *out)
{
	out->fixed = pair_of((int32_t)(0.5 + w * TRIANGLE_ONE));
}

static void put_real(double w, union weight *out)
{
	out->real = (float)w;
}

static void triangle_weigh(const struct axis *axis, uint32_t i,
			   struct axis_span span, union weight *weights)
{
	weigh_triangle(axis, i, span, put_pair, weights);
}

static void triangle_weigh_real(const struct axis *axis, uint32_t i,
				struct axis_span span, union weight *weights)
{
	weigh_triangle(axis, i, span, put_real, weights);
}

static const struct axis_class CLASSES[] = {
	[AXIS_BOX] = { axis_scale, box_span, box_weigh },
	[AXIS_WHOLE] = { ratio, whole_span, whole_weigh },
	[AXIS_LINEAR] = { ratio, linear_span, linear_weigh },
	[AXIS_TRIANGLE] = { ratio, triangle_span, triangle_weigh },
	[AXIS_LINEAR_REAL] = { ratio, linear_span, linear_weigh_real },
	[AXIS_TRIANGLE_REAL] = { ratio, triangle_span, triangle_weigh_real },
};

/* The number, in the whole result, of the axis' output i. */
static uint32_t output_at(const struct axis_part *part, uint32_t i)
{
	return part->begin + (part->mirror ? part->count - 1 - i : i);
}

/*
 * Makes all spans as long as the longest. A span that would end past the input
 * begins earlier, with weights of 0.
 */
static void measure_axis(struct axis *axis, const struct axis_class *class)
{
	uint32_t low = UINT32_MAX, high = 0;

	axis->taps = 1;
	for (uint32_t i = 0; i < axis->part.count; i++) {
		struct axis_span s =
			class->span(axis, output_at(&axis->part, i));

		axis->spans[i] = s;
		axis->taps = (uint32_t)max_u64(axis->taps, s.n);
		low = (uint32_t)min_u64(low, s.first);
		high = (uint32_t)max_u64(high, s.first);
	}
	high = (uint32_t)min_u64(high, axis->part.from - axis->taps);
	axis->origin = (uint32_t)min_u64(low, high);
	axis->span = high + axis->taps - axis->origin;
}

static void fill_weights(struct axis *axis, const struct axis_class *class)
{
	uint32_t taps = axis->taps, last = axis->part.from - taps;

	for (uint32_t i = 0; i < axis->part.count; i++) {
		union weight *w = axis->weights + (size_t)i * taps;
		struct axis_span span = axis->spans[i];
		uint32_t first = (uint32_t)min_u64(span.first, last);

		memset(w, 0, taps * sizeof(*w));
		class->weigh(axis, output_at(&axis->part, i), span,
			     w + (span.first - first));
		axis->first[i] = first - axis->origin;
	}
}

static bool same_part(const struct axis_part *a, const struct axis_part *b)
{
	return a->from == b->from && a->to == b->to && a->begin == b->begin &&
	       a->count == b->count && a->mirror == b->mirror;
}

int axis_build(struct axis *axis, enum axis_kind kind,
	       const struct axis_part *part)
{
	const struct axis_class *class = &CLASSES[kind];
	uint32_t n = part->count;
	int r;

	if (axis->kind == kind && same_part(&axis->part, part))
		return 0;
	axis->kind = AXIS_NONE;
	axis->part = *part;
	axis->scale = class->scale(part->from, part->to);
	axis->inverse = ratio(part->to, part->from);
	r = scratch_grow(&axis->memory[0], n,
			 sizeof(uint32_t) + sizeof(struct axis_span));
	if (r)
		return r;
	axis->spans = axis->memory[0].p;
	axis->first = (uint32_t *)(axis->spans + n);
	measure_axis(axis, class);
	r = scratch_grow(&axis->memory[1], (uint64_t)n * axis->taps,
			 sizeof(union weight));
	if (r)
		return r;
	axis->weights = axis->memory[1].p;
	fill_weights(axis, class);
	axis->kind = kind;
	return 0;
}

void axis_fini(struct axis *axis)
{
	scratch_fini(&axis->memory[0]);
	scratch_fini(&axis->memory[1]);
	*axis = (struct axis){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/rows_model.h"
#include "tests/unit/t.h"

enum { CHANNELS = 3, SIDE_MAX = 300, GUARD_BYTE = 0xa5 };

/* Both axes of a resize, and its pixels at either end. */
struct work {
	struct axis x;
	struct axis y;
	uint8_t *in;
	uint8_t *out[3];
	size_t out_size; /* one byte more is a guard */
};

static void *allocate(size_t size)
{
	void *p = malloc(size);

	CHECK(p);
	return p;
}

/* All rows, filtered across and then down, by one class. */
static void run(const struct rows_class *class, const struct work *w,
		uint8_t *out)
{
	size_t in_row = (size_t)w->x.span * CHANNELS;
	size_t row = max_u64(rows_size(w->x.span), rows_size(w->x.part.count));
	union cell *tmp = allocate(row * sizeof(*tmp));
	union cell *all = allocate(row * w->y.span * sizeof(*all));
	const union cell **rows = allocate(w->y.taps * sizeof(*rows));
	void *prepared = NULL;

	if (class->prepare) {
		prepared = allocate(class->prepared_size(&w->x));
		class->prepare(&w->x, prepared);
	}
	for (uint32_t i = 0; i < w->y.span; i++) {
		/* A block of its own: sanitizers see any byte past the row. */
		uint8_t *in = allocate(in_row);

		memcpy(in, w->in + i * in_row, in_row);
		class->across(&(struct rows_across){ &w->x, prepared, in, tmp,
						     all + i * row });
		free(in);
	}
	for (uint32_t i = 0; i < w->y.part.count; i++) {
		for (uint32_t k = 0; k < w->y.taps; k++)
			rows[k] = all + (w->y.first[i] + k) * row;
		class->down(&(struct rows_down){
			.x = &w->x,
			.taps = w->y.taps,
			.w = w->y.weights + (size_t)i * w->y.taps,
			.rows = rows,
			.tmp = tmp,
			.out = out + i * (size_t)w->x.part.count * CHANNELS });
	}
	free(prepared);
	free(rows);
	free(all);
	free(tmp);
}

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_uniform(rng) * n);
}

/* As resampling has them: what is shrunk by AXIS_BOX does not grow. */
static struct axis_part random_part(struct rng *rng, enum axis_kind kind)
{
	struct axis_part p = { .from = 1 + below(rng, SIDE_MAX) };

	p.to = 1 + below(rng, kind == AXIS_BOX ? p.from : SIDE_MAX);
	if (kind == AXIS_WHOLE)
		p.from = p.to * (1 + below(rng, 4));
	p.count = 1 + below(rng, p.to);
	p.begin = below(rng, p.to - p.count + 1);
	p.mirror = below(rng, 2);
	return p;
}

static const struct rows_class *plain_class(const struct axis *x)
{
	enum axis_kind kind = x->kind;

	if (x->is_blend)
		return &blend_rows_plain;
	if (kind == AXIS_NEAREST)
		return &nearest_rows;
	if (kind == AXIS_CUBIC || kind == AXIS_LANCZOS)
		return &signed_rows_plain;
	return &rows_plain.of[kind];
}

static void check_classes(struct rng *rng, enum axis_kind kind)
{
	const struct rows_class *classes[3];
	struct axis_part x = random_part(rng, kind), y = random_part(rng, kind);
	struct work w = { 0 };
	uint32_t sparse = below(rng, 8); /* 0: black and white alone */
	size_t in_size;

	CHECK(!axis_build(&w.x, kind, &x) && !axis_build(&w.y, kind, &y));
	classes[0] = &rows_model.of[kind];
	classes[1] = plain_class(&w.x);
	classes[2] = rows_class(&w.x);
	in_size = (size_t)w.x.span * w.y.span * CHANNELS;
	w.out_size = (size_t)x.count * y.count * CHANNELS;
	w.in = allocate(in_size);
	for (size_t i = 0; i < in_size; i++)
		w.in[i] = below(rng, sparse) ? (uint8_t)rng_next(rng)
					     : (uint8_t)(255 * below(rng, 2));
	for (int i = 0; i < 3; i++) {
		w.out[i] = allocate(w.out_size + 1);
		w.out[i][w.out_size] = GUARD_BYTE;
	}
	for (int i = 0; i < 3; i++) {
		run(classes[i], &w, w.out[i]);
		CHECK(!memcmp(w.out[0], w.out[i], w.out_size + 1));
	}
	free(w.in);
	for (int i = 0; i < 3; i++)
		free(w.out[i]);
	axis_fini(&w.x);
	axis_fini(&w.y);
}

static void all_classes_give_the_bits_of_the_model(void)
{
	struct rng rng = { .key = 1 };

	for (int i = 0; i < 100; i++)
		for (int kind = AXIS_BOX; kind < AXIS_IMAGES; kind++)
			check_classes(&rng, kind);
	if (!isa_has_v3())
		printf("skip: rows: no AVX2\n");
}

static bool has_weights(enum axis_kind kind)
{
	return kind != AXIS_WHOLE && kind != AXIS_NEAREST;
}

/* The values of a part of an axis equal those of the whole axis. */
static void check_part(struct rng *rng, enum axis_kind kind)
{
	struct axis_part p = random_part(rng, kind), all = p;
	struct axis part = { 0 }, whole = { 0 };

	all.begin = 0;
	all.count = p.to;
	all.mirror = false;
	CHECK(!axis_build(&part, kind, &p) && !axis_build(&whole, kind, &all));
	CHECK(part.origin + part.span <= p.from);
	for (uint32_t i = 0; i < p.count; i++) {
		uint32_t at = p.begin + (p.mirror ? p.count - 1 - i : i);
		struct axis_span a = part.spans[i], b = whole.spans[at];
		uint32_t first = part.origin + part.first[i];

		CHECK(a.first == b.first && a.n == b.n);
		CHECK(part.first[i] + part.taps <= part.span);
		for (uint32_t k = 0; k < a.n && has_weights(kind); k++) {
			size_t from = a.first - first + k;
			size_t of = b.first - whole.first[at] + k;

			CHECK(part.weights[i * part.taps + from].fixed ==
			      whole.weights[at * whole.taps + of].fixed);
		}
	}
	axis_fini(&part);
	axis_fini(&whole);
}

static void parts_are_parts_of_the_whole(void)
{
	struct rng rng = { .key = 2 };

	for (int i = 0; i < 500; i++)
		for (int kind = AXIS_BOX; kind < AXIS_IMAGES; kind++)
			check_part(&rng, kind);
}

/* Sums of products with bytes fit 31 bits, and so do weights in their pairs. */
static void check_range(enum axis_kind kind, uint32_t from, uint32_t to)
{
	const struct axis_part p = { .from = from, .to = to, .count = to };
	struct axis axis = { 0 };

	CHECK(!axis_build(&axis, kind, &p));
	for (uint32_t i = 0; i < to; i++) {
		const union weight *w = axis.weights + (size_t)i * axis.taps;
		int64_t sum = 0, all = 0;

		for (uint32_t k = 0; k < axis.taps; k++) {
			int64_t v = axis_weight(&axis, w[k]);

			sum += v;
			all += v < 0 ? -v : v;
			CHECK(v > -(1 << 23) && v < 1 << 23);
		}
		CHECK(255 * all + (1 << 21) <= INT32_MAX);
		CHECK(sum - (1 << 22) <= axis.taps &&
		      (1 << 22) - sum <= axis.taps);
	}
	axis_fini(&axis);
}

static void weights_stay_within_their_numbers(void)
{
	static const uint32_t far[][2] = { { 65535, 1 },     { 65535, 7 },
					   { 1, 16384 },     { 2, 16384 },
					   { 16383, 16384 }, { 65535, 16384 } };
	struct rng rng = { .key = 3 };

	for (int kind = AXIS_CUBIC; kind <= AXIS_LANCZOS; kind++) {
		for (uint32_t from = 1; from < 40; from++)
			for (uint32_t to = 1; to < 60; to++)
				check_range(kind, from, to);
		for (int i = 0; i < 200; i++)
			check_range(kind, 1 + below(&rng, 3000),
				    1 + below(&rng, 3000));
		for (size_t i = 0; i < ARRAY_LEN(far); i++)
			check_range(kind, far[i][0], far[i][1]);
	}
}

int main(void)
{
	weights_stay_within_their_numbers();
	all_classes_give_the_bits_of_the_model();
	parts_are_parts_of_the_whole();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/grid/points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/op/operands.h"

enum { BYTES = 256, RGB = 3, LOT = 256 };

/* An operation at work. */
struct points_work {
	const struct op *op;
	const struct grid *from;
	const struct grid *to;
	float *operands; /* of each channel */
};

static void fill_operands(const struct args *args, const struct type *in,
			  const struct rng *start, struct points_work *w)
{
	uint32_t channels = w->op->kind == OP_POINT ? w->from->channels : 1;

	for (uint32_t c = 0; c < channels; c++) {
		struct rng rng = *start;
		float *out =
			w->operands + (size_t)c * w->op->value->num_operands;

		if (w->op->value->grid_operands)
			w->op->value->grid_operands(args, in, c, out);
		else
			w->op->value->operands(args, in->dtype, c,
					       operands_uniform(&rng), out);
	}
}

/* Writes results: of bytes limited and truncated, as those of images. */
static void put(enum dtype dtype, const float *values, size_t count,
		uint8_t *out)
{
	if (dtype != DTYPE_U1) {
		dtype_convert(DTYPE_F4, values, dtype, out, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		out[i] = op_whole(values[i]);
}

/* The results for all bytes of a channel. */
static void fill_table(const struct points_work *w, uint32_t channel,
		       uint8_t *table)
{
	const float *operands =
		w->operands + (size_t)channel * w->op->value->num_operands;
	float values[BYTES];

	for (unsigned v = 0; v < BYTES; v++)
		values[v] = w->op->value->point((float)v, operands);
	put(w->to->dtype, values, BYTES, table);
}

static void look_up(const struct points_work *w, const uint8_t *tables,
		    const uint8_t *in, uint8_t *out)
{
	uint32_t channels = w->from->channels;
	size_t item = dtype_size(w->to->dtype);

	for (uint32_t c = 0; c < channels; c++) {
		const uint8_t *table = tables + c * BYTES * item;
		const uint8_t *v = in + c;
		uint8_t *to = out + c * item;
		size_t step = channels * item;

		if (item == 1)
			for (uint32_t x = 0; x < w->from->width; x++)
				to[x * step] = table[v[(size_t)x * channels]];
		else
			for (uint32_t x = 0; x < w->from->width; x++)
				memcpy(to + x * step,
				       table + 4 * v[(size_t)x * channels], 4);
	}
}

static int run_bytes(const struct points_work *w)
{
	size_t item = dtype_size(w->to->dtype);
	uint8_t *tables = malloc(w->from->channels * BYTES * item);

	if (!tables)
		return -ENOMEM;
	for (uint32_t c = 0; c < w->from->channels; c++)
		fill_table(w, c, tables + c * BYTES * item);
	for (uint32_t f = 0; f < w->from->frames; f++) {
		for (uint32_t y = 0; y < w->from->height; y++)
			look_up(w, tables, grid_row(w->from, f, y),
				grid_row(w->to, f, y));
	}
	free(tables);
	return 0;
}

/* Some values of a row, the first of which is of channel `c`. Returns the
   channel of the value after them. */
static uint32_t run_lot(const struct points_work *w, uint32_t c, float *values,
			size_t count)
{
	const struct op *op = w->op;

	if (op->kind == OP_PIXEL) {
		for (size_t i = 0; i < count; i += RGB)
			op->value->pixel(values + i, w->operands);
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		values[i] = op->value->point(
			values[i], w->operands + c * op->value->num_operands);
		c = c + 1 < w->from->channels ? c + 1 : 0;
	}
	return c;
}

static void run_row(const struct points_work *w, const uint8_t *in,
		    uint8_t *out)
{
	size_t left = (size_t)w->from->width * w->from->channels, n;
	size_t from = dtype_size(w->from->dtype), to = dtype_size(w->to->dtype);
	float values[LOT];
	uint32_t c = 0;

	for (; left; left -= n, in += n * from, out += n * to) {
		n = min_u64(left, LOT / RGB * RGB);
		dtype_convert(w->from->dtype, in, DTYPE_F4, values, n);
		c = run_lot(w, c, values, n);
		put(w->to->dtype, values, n, out);
	}
}

static int run_numbers(const struct points_work *w)
{
	if (w->op->kind == OP_POINT && w->from->dtype == DTYPE_U1 &&
	    (w->to->dtype == DTYPE_U1 || w->to->dtype == DTYPE_F4))
		return run_bytes(w);
	for (uint32_t f = 0; f < w->from->frames; f++) {
		for (uint32_t y = 0; y < w->from->height; y++)
			run_row(w, grid_row(w->from, f, y),
				grid_row(w->to, f, y));
	}
	return 0;
}

int points_run(const struct op *op, const struct args *args,
	       const struct type *in, const struct rng *start,
	       const struct grid *from, const struct grid *to)
{
	struct points_work w = { op, from, to, NULL };
	int r;

	w.operands =
		calloc((size_t)from->channels * op->value->num_operands + 1,
		       sizeof(*w.operands));
	if (!w.operands)
		return -ENOMEM;
	fill_operands(args, in, start, &w);
	r = run_numbers(&w);
	free(w.operands);
	return r;
}

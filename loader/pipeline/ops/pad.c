/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "loader/image/pixels/edge.h"
#include "loader/pipeline/grid/grid.h"

enum { PADDING, MODE, FILL, LABEL };

/* The first choice of mode. Further choices are those of enum edge. */
enum { CONSTANT };

static const struct param params[] = {
	[PADDING] = { .name = "padding",
		      .kind = PARAM_INTEGERS,
		      .min_count = 1,
		      .max_count = 4,
		      .min = 0,
		      .max = OP_SIZE_MAX,
		      .help = "pixels on all sides, \"X,Y\" for left and "
			      "right, top and bottom, or "
			      "\"LEFT,TOP,RIGHT,BOTTOM\"" },
	[MODE] = { .name = "mode",
		   .kind = PARAM_CHOICE,
		   .initial = "constant",
		   .choices = "constant|edge|reflect|symmetric",
		   .help = "content of the new pixels" },
	[FILL] = OP_PARAM_FILL,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if (args->arg[PADDING].count == 3)
		return "padding is one number, two or four";
	return op_check_color(&args->arg[FILL]);
}

/* Returns the padding on a side: 0 left, 1 top, 2 right, 3 bottom. */
static uint32_t padding_of(const struct args *args, unsigned side)
{
	const struct arg *arg = &args->arg[PADDING];

	return (uint32_t)arg->number[side % arg->count];
}

static struct size resized(const struct args *args, struct size in)
{
	return (struct size){
		.width = in.width + padding_of(args, 0) + padding_of(args, 2),
		.height = in.height + padding_of(args, 1) + padding_of(args, 3),
	};
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	struct size size = { in->width, in->height };

	if (in->width) {
		size = resized(args, size);
		out->width = size.width;
		out->height = size.height;
	}
	return op_infer_image(args, in, out);
}

/* Fills the margins of a row. Its `in->width` pixels begin at `left`. */
static void repeat_row(uint8_t *row, uint32_t left, uint32_t width,
		       uint32_t all, enum edge edge)
{
	const uint8_t *from = row + 3 * (size_t)left;

	for (uint32_t x = 0; x < all; x++) {
		if (x == left)
			x += width;
		if (x >= all)
			break;
		memcpy(row + 3 * (size_t)x,
		       from + 3 * (size_t)edge_pixel(edge, (int64_t)x - left,
						     width),
		       3);
	}
}

static void copy_row(const struct image *in, uint32_t y, uint32_t left,
		     uint8_t *row)
{
	memcpy(row + 3 * (size_t)left, in->pixels + y * in->stride,
	       3 * (size_t)in->width);
}

static void surround(const struct args *args, const struct image *in,
		     const struct image *out)
{
	uint32_t left = padding_of(args, 0), top = padding_of(args, 1);
	const struct rect all = { 0, 0, out->width, out->height };

	op_fill(out, &all, &args->arg[FILL]);
	for (uint32_t y = 0; y < in->height; y++)
		copy_row(in, y, left, out->pixels + (top + y) * out->stride);
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	uint32_t left = padding_of(args, 0), top = padding_of(args, 1);
	enum edge edge = (enum edge)(args->arg[MODE].choice - 1);

	(void)sample;
	if (args->arg[MODE].choice == CONSTANT) {
		surround(args, in, out);
		return;
	}
	for (uint32_t y = 0; y < out->height; y++) {
		uint8_t *row = out->pixels + y * out->stride;

		copy_row(in, edge_pixel(edge, (int64_t)y - top, in->height),
			 left, row);
		repeat_row(row, left, in->width, out->width, edge);
	}
}

/* Copies a row of a grid with the margin on both sides. */
static void widen_row(const struct args *args, const struct grid *in,
		      const uint8_t *row, const struct grid *out, uint8_t *to)
{
	size_t pixel = grid_pixel_size(in);
	uint32_t left = padding_of(args, 0);
	enum edge edge = (enum edge)(args->arg[MODE].choice - 1);

	memcpy(to + left * pixel, row, in->width * pixel);
	for (uint32_t x = 0; x < out->width; x++) {
		if (x == left)
			x += in->width;
		if (x >= out->width)
			break;
		memcpy(to + x * pixel,
		       row + pixel * edge_pixel(edge, (int64_t)x - left,
						in->width),
		       pixel);
	}
}

static void repeat_grid(const struct args *args, const struct grid *in,
			const struct grid *out)
{
	enum edge edge = (enum edge)(args->arg[MODE].choice - 1);
	uint32_t top = padding_of(args, 1);

	for (uint32_t f = 0; f < out->frames; f++) {
		for (uint32_t y = 0; y < out->height; y++) {
			uint32_t from =
				edge_pixel(edge, (int64_t)y - top, in->height);

			widen_row(args, in, grid_row(in, f, from), out,
				  grid_row(out, f, y));
		}
	}
}

static void pad_grid(const struct args *args, const struct op_sample *sample,
		     const struct grid *in, const struct grid *out)
{
	const struct rect all = { 0, 0, out->width, out->height };
	const struct rect inner = { padding_of(args, 0), padding_of(args, 1),
				    in->width, in->height };
	struct grid target = *out;

	(void)sample;
	if (args->arg[MODE].choice != CONSTANT) {
		repeat_grid(args, in, out);
		return;
	}
	grid_fill(out, &all, &args->arg[FILL], &args->arg[LABEL]);
	grid_crop(&target, &inner);
	grid_copy(in, false, &target);
}

static void move(const struct args *args, struct uniform uniform,
		 struct size in, struct move *out)
{
	struct size size = resized(args, in);

	(void)uniform;
	*out = move_shift(padding_of(args, 0), padding_of(args, 1), size.width,
			  size.height);
}

const struct op op_pad = {
	.name = "pad",
	.help = "Add a margin around the image",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = infer,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.grid = pad_grid,
			.resized = resized,
			.move = move,
		},
};

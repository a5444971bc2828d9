/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "loader/pipeline/grid/grid.h"

enum { PADDING, FILL, GROUP, LABEL };

static const struct param params[] = {
	[PADDING] = { .name = "padding",
		      .kind = PARAM_INTEGERS,
		      .min_count = 1,
		      .max_count = 1,
		      .min = 0,
		      .max = OP_SIZE_MAX,
		      .help = "greatest distance in pixels" },
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

/* A shift along one side: pixels [from, from + size) move to [to, to + size).
 */
struct shift {
	uint32_t from;
	uint32_t to;
	uint32_t size;
};

static struct shift draw_shift(uint32_t side, uint32_t padding,
			       struct uniform uniform)
{
	uint32_t by = op_below(2 * padding + 1, uniform);
	struct shift s = { .from = by > padding ? by - padding : 0,
			   .to = by < padding ? padding - by : 0 };
	uint32_t lost = s.from + s.to;

	s.size = lost < side ? side - lost : 0;
	return s;
}

static void move_pixels(const struct image *image, struct shift x,
			struct shift y)
{
	bool upwards = y.from > y.to;

	for (uint32_t i = 0; i < y.size; i++) {
		size_t row = upwards ? i : y.size - 1 - i;

		memmove(image->pixels + (y.to + row) * image->stride +
				3 * (size_t)x.to,
			image->pixels + (y.from + row) * image->stride +
				3 * (size_t)x.from,
			3 * (size_t)x.size);
	}
}

/* Fills the uncovered parts: above and below, then left and right. */
static void fill_uncovered(const struct image *image, struct shift x,
			   struct shift y, const struct arg *color)
{
	uint32_t right = x.to + x.size, bottom = y.to + y.size;
	const struct rect rects[] = {
		{ 0, 0, image->width, y.to },
		{ 0, bottom, image->width, image->height - bottom },
		{ 0, y.to, x.to, y.size },
		{ right, y.to, image->width - right, y.size },
	};

	for (size_t i = 0; i < 4; i++)
		op_fill(image, &rects[i], color);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	const struct rect all = { 0, 0, image->width, image->height };
	uint32_t padding = (uint32_t)args->arg[PADDING].number[0];
	struct shift y = draw_shift(image->height, padding, sample->uniform);
	struct shift x = draw_shift(image->width, padding, sample->uniform);

	if (!x.size || !y.size) {
		op_fill(image, &all, &args->arg[FILL]);
		return;
	}
	move_pixels(image, x, y);
	fill_uncovered(image, x, y, &args->arg[FILL]);
}

static void move_grid(const struct args *args, const struct op_sample *sample,
		      const struct grid *in, const struct grid *out)
{
	const struct rect all = { 0, 0, in->width, in->height };
	uint32_t padding = (uint32_t)args->arg[PADDING].number[0];
	struct shift y = draw_shift(in->height, padding, sample->uniform);
	struct shift x = draw_shift(in->width, padding, sample->uniform);
	const struct rect from = { x.from, y.from, x.size, y.size };
	const struct rect to = { x.to, y.to, x.size, y.size };
	struct grid source = *in, target = *out;

	grid_fill(out, &all, &args->arg[FILL], &args->arg[LABEL]);
	if (!x.size || !y.size)
		return;
	grid_crop(&source, &from);
	grid_crop(&target, &to);
	grid_copy(&source, false, &target);
}

static void move(const struct args *args, struct uniform uniform,
		 struct size in, struct move *out)
{
	uint32_t padding = (uint32_t)args->arg[PADDING].number[0];
	double y = (double)padding - op_below(2 * padding + 1, uniform);
	double x = (double)padding - op_below(2 * padding + 1, uniform);

	*out = move_shift(x, y, in.width, in.height);
}

const struct op op_random_translate = {
	.name = "random_translate",
	.help = "Move the image by a random distance",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.grid = move_grid,
			.move = move,
		},
};

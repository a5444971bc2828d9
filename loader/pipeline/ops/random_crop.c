/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without padding, random_crop is a geometry, so that the loader decodes only
 * the crop. Padding requires another image. Both variants draw the same random
 * numbers.
 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/pixels/edge.h"
#include "loader/pipeline/grid/grid.h"

enum { SIZE, PADDING, PAD_IF_NEEDED, FILL, MODE, GROUP, LABEL };

/* Keep the order of the choices of mode. Further choices are those of enum
   edge. */
enum { CONSTANT, EDGES };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("height and width of the result, one number "
			       "or \"H,W\""),
	[PADDING] = { .name = "padding",
		      .kind = PARAM_INTEGERS,
		      .initial = "0",
		      .min_count = 1,
		      .max_count = 4,
		      .min = 0,
		      .max = OP_SIZE_MAX,
		      .help = "margin before the crop, as for pad" },
	[PAD_IF_NEEDED] = { .name = "pad_if_needed",
			    .kind = PARAM_INTEGERS,
			    .initial = "false",
			    .min_count = 1,
			    .max_count = 1,
			    .min = 0,
			    .max = 1,
			    .choices = "false|true",
			    .help = "pad sides that are too short" },
	[FILL] = OP_PARAM_FILL,
	[MODE] = { .name = "mode",
		   .kind = PARAM_CHOICE,
		   .initial = "constant",
		   .choices = "constant|edge|reflect|symmetric",
		   .help = "content of the margin" },
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if (args->arg[PADDING].count == 3)
		return "padding is one number, two or four";
	return op_check_color(&args->arg[FILL]);
}

/* Whether an argument is true in Python: a number other than 0, or a choice. */
static bool pads_if_needed(const struct args *args)
{
	const struct arg *arg = &args->arg[PAD_IF_NEEDED];

	return arg->count ? arg->number[0] > 0 : arg->choice > 0;
}

/* An axis: the image's pixels are [before, before + side) of the `all` padded
   pixels. */
struct crop_side {
	uint32_t side;
	uint32_t before;
	uint32_t all;
	uint32_t crop;
};

/* `first`: the margin before it, 0 left, 1 top. */
static struct crop_side axis_of(const struct args *args, unsigned first,
				uint32_t side, uint32_t crop)
{
	const struct arg *padding = &args->arg[PADDING];
	uint32_t before = (uint32_t)padding->number[first % padding->count];
	uint32_t after =
		(uint32_t)padding->number[(first + 2) % padding->count];
	struct crop_side a = { side, before, before + side + after, crop };

	if (pads_if_needed(args) && a.all < crop) {
		uint32_t more = crop - a.all;

		a.before += more;
		a.all += 2 * more;
	}
	return a;
}

static struct crop_side axis_x(const struct args *args, struct size in)
{
	return axis_of(args, 0, in.width, op_size(&args->arg[SIZE]).width);
}

static struct crop_side axis_y(const struct args *args, struct size in)
{
	return axis_of(args, 1, in.height, op_size(&args->arg[SIZE]).height);
}

static bool is_large(const struct args *args, struct size in)
{
	struct crop_side x = axis_x(args, in), y = axis_y(args, in);

	return x.crop <= x.all && y.crop <= y.all;
}

static struct size resized(const struct args *args, struct size in)
{
	return is_large(args, in) ? op_size(&args->arg[SIZE])
				  : (struct size){ 0 };
}

static const char *infer_size(const struct args *args, const struct type *in,
			      struct type *out)
{
	struct size size = op_size(&args->arg[SIZE]);

	if (in->width &&
	    !is_large(args, (struct size){ in->width, in->height }))
		return "is larger than the image; pad_if_needed=true pads it";
	out->width = size.width;
	out->height = size.height;
	return NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_crop(in);

	return wrong ? wrong : infer_size(args, in, out);
}

static const char *infer_padded(const struct args *args, const struct type *in,
				struct type *out)
{
	const char *wrong = op_infer_image(args, in, out);

	return wrong ? wrong : infer_size(args, in, out);
}

static uint32_t draw_start(const struct crop_side *a, struct uniform uniform)
{
	return op_below(a->all - a->crop + 1, uniform);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	struct crop_side x = axis_x(args, in), y = axis_y(args, in);

	out->to = resized(args, in);
	if (!out->to.width)
		return;
	out->from.y = draw_start(&y, uniform);
	out->from.x = draw_start(&x, uniform);
	out->from.width = x.crop;
	out->from.height = y.crop;
}

/* The part of a crop from `start` on that the image covers. */
struct cover {
	uint32_t from; /* pixel of the image */
	uint32_t to;   /* pixel of the crop */
	uint32_t size;
};

static struct cover cover_of(const struct crop_side *a, uint32_t start)
{
	uint32_t begin = (uint32_t)max_u64(start, a->before);
	uint32_t end = (uint32_t)min_u64((uint64_t)start + a->crop,
					 (uint64_t)a->before + a->side);

	if (begin >= end)
		return (struct cover){ 0 };
	return (struct cover){ begin - a->before, begin - start, end - begin };
}

/* Makes pixel x of a row, which is outside the image. */
static void put_beside(const struct args *args, int64_t at, uint32_t side,
		       const uint8_t *row, uint8_t *to)
{
	enum edge edge = (enum edge)(args->arg[MODE].choice - EDGES);

	memcpy(to, row + 3 * (size_t)edge_pixel(edge, at, side), 3);
}

/* Makes a row of the crop from the row of the image that it repeats. */
static void repeat_row(const struct args *args, const struct crop_side *x,
		       uint32_t start, const uint8_t *row, uint8_t *to)
{
	struct cover c = cover_of(x, start);
	int64_t first = (int64_t)start - x->before;

	memcpy(to + 3 * (size_t)c.to, row + 3 * (size_t)c.from,
	       3 * (size_t)c.size);
	for (uint32_t i = 0; i < c.to; i++)
		put_beside(args, first + i, x->side, row, to + 3 * (size_t)i);
	for (uint32_t i = c.to + c.size; i < x->crop; i++)
		put_beside(args, first + i, x->side, row, to + 3 * (size_t)i);
}

/* Fills the parts of `out` outside the image: above, below, left and right. */
static void fill_beside(const struct args *args, const struct cover *x,
			const struct cover *y, const struct image *out)
{
	uint32_t right = x->to + x->size, bottom = y->to + y->size;
	const struct rect rects[] = {
		{ 0, 0, out->width, y->to },
		{ 0, bottom, out->width, out->height - bottom },
		{ 0, y->to, x->to, y->size },
		{ right, y->to, out->width - right, y->size },
	};

	for (size_t i = 0; i < ARRAY_LEN(rects); i++)
		op_fill(out, &rects[i], &args->arg[FILL]);
}

static void surround(const struct args *args, const struct cover *x,
		     const struct cover *y, const struct image *in,
		     const struct image *out)
{
	for (size_t i = 0; i < y->size; i++)
		memcpy(out->pixels + (y->to + i) * out->stride +
			       3 * (size_t)x->to,
		       in->pixels + (y->from + i) * in->stride +
			       3 * (size_t)x->from,
		       3 * (size_t)x->size);
	fill_beside(args, x, y, out);
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	const struct size size = { in->width, in->height };
	struct crop_side x = axis_x(args, size), y = axis_y(args, size);
	uint32_t top = draw_start(&y, sample->uniform);
	uint32_t left = draw_start(&x, sample->uniform);
	struct cover across = cover_of(&x, left), down = cover_of(&y, top);
	int word = args->arg[MODE].choice;

	if (word == CONSTANT) {
		surround(args, &across, &down, in, out);
		return;
	}
	for (uint32_t i = 0; i < out->height; i++) {
		uint32_t from =
			edge_pixel((enum edge)(word - EDGES),
				   (int64_t)top + i - y.before, in->height);

		repeat_row(args, &x, left, in->pixels + from * in->stride,
			   out->pixels + i * out->stride);
	}
}

/* Copies the part of a grid in the crop, and fills the rest. */
static void surround_grid(const struct args *args, const struct cover *x,
			  const struct cover *y, const struct grid *in,
			  const struct grid *out)
{
	const struct rect all = { 0, 0, out->width, out->height };
	const struct rect from = { x->from, y->from, x->size, y->size };
	const struct rect to = { x->to, y->to, x->size, y->size };
	struct grid source = *in, target = *out;

	grid_fill(out, &all, &args->arg[FILL], &args->arg[LABEL]);
	if (!x->size || !y->size)
		return;
	grid_crop(&source, &from);
	grid_crop(&target, &to);
	grid_copy(&source, false, &target);
}

static void repeat_grid_row(enum edge edge, const struct crop_side *x,
			    uint32_t start, const struct grid *in,
			    const uint8_t *row, uint8_t *to)
{
	size_t pixel = grid_pixel_size(in);

	for (uint32_t i = 0; i < x->crop; i++) {
		int64_t at = (int64_t)start + i - x->before;

		memcpy(to + i * pixel,
		       row + pixel * edge_pixel(edge, at, x->side), pixel);
	}
}

static void crop_grid(const struct args *args, const struct op_sample *sample,
		      const struct grid *in, const struct grid *out)
{
	const struct size size = { in->width, in->height };
	struct crop_side x = axis_x(args, size), y = axis_y(args, size);
	uint32_t top = draw_start(&y, sample->uniform);
	uint32_t left = draw_start(&x, sample->uniform);
	struct cover across = cover_of(&x, left), down = cover_of(&y, top);
	enum edge edge = (enum edge)(args->arg[MODE].choice - EDGES);

	if (args->arg[MODE].choice == CONSTANT) {
		surround_grid(args, &across, &down, in, out);
		return;
	}
	for (uint32_t f = 0; f < out->frames; f++) {
		for (uint32_t i = 0; i < out->height; i++) {
			int64_t at = (int64_t)top + i - y.before;
			uint32_t from = edge_pixel(edge, at, in->height);

			repeat_grid_row(edge, &x, left, in,
					grid_row(in, f, from),
					grid_row(out, f, i));
		}
	}
}

static void move(const struct args *args, struct uniform uniform,
		 struct size in, struct move *out)
{
	struct crop_side x = axis_x(args, in), y = axis_y(args, in);
	double top, left;

	*out = move_none(in.width, in.height);
	if (!is_large(args, in)) /* the sample of the image fails */
		return;
	top = draw_start(&y, uniform);
	left = draw_start(&x, uniform);
	*out = move_shift(x.before - left, y.before - top, x.crop, y.crop);
}

static const struct op padded = {
	.name = "random_crop",
	.help = "Crop a random part of the padded image",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = infer_padded,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.grid = crop_grid,
			.resized = resized,
			.move = move,
		},
};

static const struct op *instead(const struct args *args)
{
	const struct arg *padding = &args->arg[PADDING];
	bool pads = pads_if_needed(args);

	for (unsigned i = 0; i < padding->count; i++)
		pads |= padding->number[i] > 0;
	return pads ? &padded : NULL;
}

const struct op op_random_crop = {
	.name = "random_crop",
	.help = "Crop a random part of the image, optionally "
		"padded first",
	.kind = OP_GEOMETRY,
	.params = params,
	.check = check,
	.infer = infer,
	.instead = instead,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/warp.h"

enum {
	DEGREES,
	TRANSLATE,
	SCALE,
	SHEAR,
	INTERPOLATION,
	FILL,
	GROUP,
	LABEL,
};

static const struct param params[] = {
	[DEGREES] = { .name = "degrees",
		      .kind = PARAM_REALS,
		      .initial = "0",
		      .min_count = 1,
		      .max_count = 2,
		      .min = -3600,
		      .max = 3600,
		      .help = "greatest angle in both directions, or "
			      "\"LEAST,MOST\"; positive is counterclockwise" },
	[TRANSLATE] = { .name = "translate",
			.kind = PARAM_REALS,
			.initial = "0",
			.min_count = 1,
			.max_count = 2,
			.min = 0,
			.max = 1,
			.help = "greatest distance, as a fraction of width and height" },
	[SCALE] = { .name = "scale",
		    .kind = PARAM_REALS,
		    .initial = "1",
		    .min_count = 1,
		    .max_count = 2,
		    .min = 0x1p-10,
		    .max = 0x1p10,
		    .help = "factor, or \"LEAST,MOST\"" },
	[SHEAR] = { .name = "shear",
		    .kind = PARAM_REALS,
		    .initial = "0",
		    .min_count = 1,
		    .max_count = 4,
		    .min = -89,
		    .max = 89,
		    .help = "greatest angle along x in both directions, "
			    "in degrees; \"LEAST,MOST\"; or two of "
			    "these, along x and y" },
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	const struct arg *shear = &args->arg[SHEAR];

	if (shear->count == 3 ||
	    (shear->count == 4 && shear->number[2] > shear->number[3]))
		return "shear is one number, or least and most of x, or of x "
		       "and y";
	if (op_check_range(shear) || op_check_range(&args->arg[SCALE]))
		return "LEAST is greater than MOST";
	return op_check_warp(&args->arg[DEGREES], &args->arg[FILL]);
}

/* Draws a distance in whole pixels, rounded half to even, like torchvision. */
static double draw_move(const struct arg *translate, unsigned axis,
			uint32_t side, struct uniform uniform)
{
	double most = translate->number[translate->count == 2 ? axis : 0];
	double u = uniform.next(uniform.arg);

	return op_round((2 * u - 1) * most * side);
}

static double draw_shear_y(const struct arg *shear, struct uniform uniform)
{
	double u = uniform.next(uniform.arg);

	if (shear->count < 4)
		return 0;
	return shear->number[2] + u * (shear->number[3] - shear->number[2]);
}

static unsigned maps(const struct args *args, struct uniform u, struct size in,
		     struct warp_map *out)
{
	struct affine_words words = { 0 };
	struct affine map;

	words.degrees = op_about(&args->arg[DEGREES], u);
	words.translate[0] = draw_move(&args->arg[TRANSLATE], 0, in.width, u);
	words.translate[1] = draw_move(&args->arg[TRANSLATE], 1, in.height, u);
	words.scale = op_within(&args->arg[SCALE], u);
	words.shear[0] = op_about(&args->arg[SHEAR], u);
	words.shear[1] = draw_shear_y(&args->arg[SHEAR], u);
	words.center[0] = in.width * 0.5;
	words.center[1] = in.height * 0.5;
	map = affine_of(&words);
	*out = warp_map_of(&map);
	return 1;
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	op_warp(maps, args, INTERPOLATION, FILL, sample, in, out);
}

const struct op op_affine = {
	.name = "affine",
	.help = "Rotate, move, scale and shear the image at random",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.maps = maps,
			.joins = true,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { SIZE, SCALE, RATIO, INTERPOLATION };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("of the result, one number or \"H,W\""),
	[SCALE] = { .name = "scale",
		    .kind = PARAM_REALS,
		    .initial = "0.08,1",
		    .min_count = 2,
		    .max_count = 2,
		    .min = 0x1p-20,
		    .max = 1,
		    .help = "the crop's area, of the image's: least, most" },
	[RATIO] = { .name = "ratio",
		    .kind = PARAM_REALS,
		    .initial = "0.75,1.3333333333333333",
		    .min_count = 2,
		    .max_count = 2,
		    .min = 0x1p-10,
		    .max = 0x1p10,
		    .help = "the crop's width by its height: least, most" },
	[INTERPOLATION] = OP_PARAM_INTERPOLATION,
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	const double *scale = args->arg[SCALE].number;
	const double *ratio = args->arg[RATIO].number;

	if (scale[0] > scale[1])
		return "the least scale is above the most";
	return ratio[0] > ratio[1] ? "the least ratio is above the most" : NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	struct size size = op_size(&args->arg[SIZE]);

	out->width = size.width;
	out->height = size.height;
	return op_infer_crop(in);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	const double *scale = args->arg[SCALE].number;
	const double *ratio = args->arg[RATIO].number;
	struct crop_limits limits = { { scale[0], scale[1] },
				      { ratio[0], ratio[1] } };

	out->from = crop_random(&limits, uniform, in.width, in.height);
	/* The crop is empty if the ratio is extreme and the image is thin
	   (crop.h). */
	if (!out->from.width)
		out->from.width = 1;
	if (!out->from.height)
		out->from.height = 1;
	out->to = op_size(&args->arg[SIZE]);
	out->how = (enum interpolation)args->arg[INTERPOLATION].word;
}

const struct op op_random_resized_crop = {
	.name = "random_resized_crop",
	.help = "a random part of the image, resized",
	.kind = OP_GEOMETRY,
	.params = params,
	.check = check,
	.infer = infer,
	.draw = draw,
};

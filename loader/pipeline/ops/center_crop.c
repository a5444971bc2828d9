/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { SIZE, RATIO, INTERPOLATION };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("height and width of the result, one number "
			       "or \"H,W\""),
	[RATIO] = { .name = "ratio",
		    .kind = PARAM_REALS,
		    .initial = "0.875",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 0x1p-20,
		    .max = 1,
		    .help = "side of the square, as a fraction of the "
			    "shorter side" },
	[INTERPOLATION] = OP_PARAM_INTERPOLATION,
	{ 0 },
};

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
	(void)uniform;
	out->from =
		crop_center(args->arg[RATIO].number[0], in.width, in.height);
	/* FFCV fails for an empty crop. Take one pixel instead. */
	if (!out->from.width)
		out->from = (struct rect){ (in.width - 1) / 2,
					   (in.height - 1) / 2, 1, 1 };
	out->to = op_size(&args->arg[SIZE]);
	out->how = (enum interpolation)args->arg[INTERPOLATION].choice;
}

const struct op op_center_crop = {
	.name = "center_crop",
	.help = "Crop the central square and resize it",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

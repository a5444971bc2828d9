/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { SIZE, SCALE, RATIO, INTERPOLATION };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("height and width of the result, one number "
			       "or \"H,W\""),
	[SCALE] = OP_PARAM_SCALE("0.08,1"),
	[RATIO] = OP_PARAM_RATIO,
	[INTERPOLATION] = OP_PARAM_INTERPOLATION,
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_crop(&args->arg[SCALE], &args->arg[RATIO]);
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
	out->from =
		op_draw_crop(&args->arg[SCALE], &args->arg[RATIO], uniform, in);
	out->to = op_size(&args->arg[SIZE]);
	out->how = (enum interpolation)args->arg[INTERPOLATION].choice;
}

const struct op op_random_resized_crop = {
	.name = "random_resized_crop",
	.help = "Crop a random part of the image and resize it",
	.kind = OP_GEOMETRY,
	.params = params,
	.check = check,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { SIZE, VIEWS, SCALE, RATIO, INTERPOLATION };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE(
		"height and width of each crop, one number or \"H,W\""),
	[VIEWS] = { .name = "views",
		    .kind = PARAM_INTEGERS,
		    .initial = "2",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 1,
		    .max = OP_VIEWS_MAX,
		    .help = "number of crops" },
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
	return op_infer_views((unsigned)args->arg[VIEWS].number[0],
			      op_size(&args->arg[SIZE]), (struct size){ 1, 1 },
			      in, out);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	out->from =
		op_draw_crop(&args->arg[SCALE], &args->arg[RATIO], uniform, in);
	out->to = op_size(&args->arg[SIZE]);
	out->how = (enum interpolation)args->arg[INTERPOLATION].choice;
}

const struct op op_multi_crop = {
	.name = "multi_crop",
	.help = "Crop several random parts of the image and "
		"resize each",
	.kind = OP_GEOMETRY,
	.params = params,
	.check = check,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

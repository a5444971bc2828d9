/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/enhance.h"

enum { FACTOR, P };

static const struct param params[] = {
	[FACTOR] = { .name = "factor",
		     .kind = PARAM_REALS,
		     .min_count = 1,
		     .max_count = 2,
		     .min = 0,
		     .max = 16,
		     .help = "0 blurs, 1 changes nothing, 2 sharpens; or "
			     "\"LEAST,MOST\"" },
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_range(&args->arg[FACTOR]);
}

static uint64_t scratch(const struct args *args, struct size in)
{
	(void)args;
	return enhance_scratch(in.width);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	bool on = op_chance(&args->arg[P], sample->uniform);
	double factor = op_within(&args->arg[FACTOR], sample->uniform);

	if (on)
		enhance_sharpness(image, (float)factor, sample->scratch);
}

const struct op op_sharpness = {
	.name = "sharpness",
	.help = "Sharpen or blur the image by a factor",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.keeps_places = true,
			.in_place = image,
			.scratch = scratch,
		},
};

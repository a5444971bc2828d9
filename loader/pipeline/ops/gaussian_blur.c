/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/blur.h"

enum { SIZE, SIGMA, P };

static const struct param params[] = {
	[SIZE] = { .name = "size",
		   .kind = PARAM_INTEGERS,
		   .min_count = 1,
		   .max_count = 1,
		   .min = 1,
		   .max = BLUR_SIZE_MAX,
		   .help = "number of pixels averaged in a row and in a "
			   "column, odd" },
	[SIGMA] = { .name = "sigma",
		    .kind = PARAM_REALS,
		    .initial = "0.1,2",
		    .min_count = 1,
		    .max_count = 2,
		    .min = 0.01,
		    .max = 1024,
		    .help = "standard deviation in pixels, or \"LEAST,MOST\"" },
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if ((unsigned)args->arg[SIZE].number[0] % 2 == 0)
		return "size must be odd";
	return op_check_range(&args->arg[SIGMA]);
}

static unsigned size_of(const struct args *args)
{
	return (unsigned)args->arg[SIZE].number[0];
}

static uint64_t scratch(const struct args *args, struct size in)
{
	return blur_scratch(size_of(args), in.width);
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	bool on = op_chance(&args->arg[P], sample->uniform);
	double sigma = op_within(&args->arg[SIGMA], sample->uniform);
	struct blur blur;

	blur_init(&blur, on ? size_of(args) : 1, sigma);
	blur_image(&blur, in, out, sample->scratch);
}

const struct op op_gaussian_blur = {
	.name = "gaussian_blur",
	.help = "Blur the image with a random standard deviation",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.keeps_places = true,
			.redraw = redraw,
			.scratch = scratch,
		},
};

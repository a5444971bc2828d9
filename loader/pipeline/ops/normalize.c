/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { MEAN, STD, COLORS = 3 };

/* The usual means and standard deviations of ImageNet's training set. */
static const double imagenet[][3] = {
	[MEAN] = { 0.485, 0.456, 0.406 },
	[STD] = { 0.229, 0.224, 0.225 },
};

static const struct param params[] = {
	[MEAN] = { .name = "mean",
		   .kind = PARAM_REALS,
		   .min_count = 1,
		   .max_count = OP_NUMBERS_MAX,
		   .min = 0,
		   .max = 1,
		   .choices = "imagenet",
		   .help = "mean of each channel, for values from 0 to "
			   "1; or imagenet" },
	[STD] = { .name = "std",
		  .kind = PARAM_REALS,
		  .initial = "",
		  .min_count = 1,
		  .max_count = OP_NUMBERS_MAX,
		  .min = 0x1p-20,
		  .max = 16,
		  .help = "standard deviation of each channel, for "
			  "values from 0 to 1" },
	{ 0 },
};

static const char *check(const struct args *args)
{
	const struct arg *mean = &args->arg[MEAN], *std = &args->arg[STD];

	if (mean->choice >= 0)
		return std->count ? "imagenet sets std too" : NULL;
	if (!std->count)
		return "std is missing";
	if (mean->count == 1 || std->count == 1 || mean->count == std->count)
		return NULL;
	return "one number, or one per channel, of mean and std alike";
}

static bool is_per_channel(const struct arg *arg, uint32_t channels)
{
	return arg->count <= 1 || arg->count == channels;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_values(in);
	uint32_t channels = in->kind == TYPE_IMAGE ? COLORS : in->channels;

	out->dtype = DTYPE_F4;
	if (wrong)
		return wrong;
	if (args->arg[MEAN].choice >= 0 && channels != COLORS)
		return "has imagenet's means for three channels only";
	return is_per_channel(&args->arg[MEAN], channels) &&
			       is_per_channel(&args->arg[STD], channels)
		       ? NULL
		       : "takes one number, or one per channel";
}

static double constant(const struct args *args, int which, unsigned channel)
{
	const struct arg *arg = &args->arg[which];

	if (args->arg[MEAN].choice >= 0)
		return imagenet[which][channel];
	return arg->number[arg->count == 1 ? 0 : channel];
}

/* `unit`: the value that means 1. */
static void scale(const struct args *args, double unit, unsigned channel,
		  float *out)
{
	out[0] = (float)(unit * constant(args, MEAN, channel));
	out[1] = (float)(1 / (unit * constant(args, STD, channel)));
}

static void operands(const struct args *args, enum dtype in, unsigned channel,
		     struct uniform uniform, float *out)
{
	(void)in;
	(void)uniform;
	scale(args, 255, channel, out);
}

static void grid_operands(const struct args *args, const struct type *in,
			  unsigned channel, float *out)
{
	scale(args, in->unit, channel, out);
}

OP_CODE(float normalize(float v, float mean, float scale) {
	return (v - mean) * scale;
})

static float point(float v, const float *o)
{
	return normalize(v, o[0], o[1]);
}

const struct op op_normalize = {
	.name = "normalize",
	.help = "Subtract the mean and divide by the "
		"standard deviation",
	.kind = OP_POINT,
	.params = params,
	.check = check,
	.infer = infer,
	.value =
		&(const struct op_value){
			.num_operands = 2,
			.operands = operands,
			.grid_operands = grid_operands,
			.point = point,
			.code = code,
		},
};

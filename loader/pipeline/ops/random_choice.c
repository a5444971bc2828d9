/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/pipeline/op/mix.h"

enum { OPS, WEIGHTS, GROUP };

#define WEIGHTS_PARAM                                                          \
	{                                                                      \
		.name = "weights", .kind = PARAM_REALS, .initial = "",         \
		.min_count = 2, .max_count = OP_BRANCHES_MAX, .min = 0,        \
		.max = 0x1p20,                                                 \
		.help = "relative frequency of each list (default: "           \
			"all are equal)"                                       \
	}
#define HELP "Apply one of several lists of operations"

static const struct param params[] = {
	[OPS] = OP_PARAM_OPS("lists of operations, separated by commas", 2,
			     OP_BRANCHES_MAX),
	[WEIGHTS] = WEIGHTS_PARAM,
	[GROUP] = OP_PARAM_GROUP,
	{ 0 },
};

static const struct param params_of_batches[] = {
	[OPS] = OP_PARAM_OPS("mixup and cutmix, separated by commas", 2,
			     OP_BRANCHES_MAX),
	[WEIGHTS] = WEIGHTS_PARAM,
	[GROUP] = MIX_PARAM_GROUP,
	{ 0 },
};

static double total(const struct arg *weights)
{
	double sum = 0;

	for (unsigned i = 0; i < weights->count; i++)
		sum += weights->number[i];
	return sum;
}

static const char *check(const struct args *args)
{
	const struct arg *weights = &args->arg[WEIGHTS];

	if (!weights->count)
		return NULL;
	if (weights->count != args->arg[OPS].count)
		return "give as many weights as lists of "
		       "operations; a comma separates lists";
	return total(weights) > 0
		       ? NULL
		       : "at least one weight must be greater than 0";
}

static size_t pick(const struct args *args, size_t num_lists,
		   struct uniform uniform, unsigned *out)
{
	const struct arg *weights = &args->arg[WEIGHTS];
	double at;

	if (!weights->count) {
		out[0] = op_below((uint32_t)num_lists, uniform);
		return 1;
	}
	at = uniform.next(uniform.arg) * total(weights);
	for (unsigned i = 0; i < weights->count; i++) {
		if (weights->number[i] > 0)
			out[0] = i;
		at -= weights->number[i];
		if (at < 0)
			break;
	}
	return 1;
}

/* Draws one choice for a batch, for its images and its labels. */
static const struct op of_batches = {
	.name = "random_choice",
	.help = HELP,
	.kind = OP_BATCH,
	.params = params_of_batches,
	.check = check,
	.infer = mix_infer,
	.branches =
		&(const struct op_branches){
			.pick = pick,
		},
};

const struct op op_random_choice = {
	.name = "random_choice",
	.help = HELP,
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.branches =
		&(const struct op_branches){
			.pick = pick,
			.of_batches = &of_batches,
		},
};

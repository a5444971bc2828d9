/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { NUM_OPS, MAGNITUDE, BINS, INTERPOLATION, FILL };

static const struct param params[] = {
	[NUM_OPS] = { .name = "num_ops",
		      .kind = PARAM_INTEGERS,
		      .initial = "2",
		      .min_count = 1,
		      .max_count = 1,
		      .min = 0,
		      .max = 64,
		      .help = "how many operations are applied" },
	[MAGNITUDE] = { .name = "magnitude",
			.kind = PARAM_INTEGERS,
			.initial = "9",
			.min_count = 1,
			.max_count = 1,
			.min = 0,
			.max = 1023,
			.help = "which of the magnitudes, from 0" },
	[BINS] = OP_PARAM_BINS,
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if (args->arg[MAGNITUDE].number[0] >= args->arg[BINS].number[0])
		return "magnitude is below bins";
	return op_check_colour(&args->arg[FILL]);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	unsigned bin = (unsigned)args->arg[MAGNITUDE].number[0];
	unsigned bins = (unsigned)args->arg[BINS].number[0];
	struct canvas c = op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL],
				    sample, image);
	struct uniform uniform = sample->uniform;

	for (double i = 0; i < args->arg[NUM_OPS].number[0]; i++) {
		uint32_t row = op_below(policy_rand.count, uniform);

		op_augment(&c, &policy_rand.rows[row], bin, bins,
			   uniform.next(uniform.arg));
	}
	canvas_end(&c, image);
}

const struct op op_rand_augment = {
	.name = "rand_augment",
	.help = "some random operations of one magnitude",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image = image,
	.scratch = op_canvas_scratch,
};

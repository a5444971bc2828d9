/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { BINS, INTERPOLATION, FILL };

static const struct param params[] = {
	[BINS] = OP_PARAM_BINS,
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_colour(&args->arg[FILL]);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	unsigned bins = (unsigned)args->arg[BINS].number[0];
	struct canvas c = op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL],
				    sample, image);
	struct uniform uniform = sample->uniform;
	uint32_t row = op_below(policy_trivial.count, uniform);
	uint32_t bin = op_below(bins, uniform);

	op_augment(&c, &policy_trivial.rows[row], bin, bins,
		   uniform.next(uniform.arg));
	canvas_end(&c, image);
}

const struct op op_trivial_augment = {
	.name = "trivial_augment",
	.help = "one random operation of a random magnitude",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image = image,
	.scratch = op_canvas_scratch,
};

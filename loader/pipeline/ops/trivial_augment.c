/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { BINS, INTERPOLATION, FILL, GROUP, LABEL };

static const struct param params[] = {
	[BINS] = OP_PARAM_BINS,	  [INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,	  [GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL, { 0 },
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

static struct augmentation draw(const struct args *args, struct uniform uniform)
{
	unsigned bins = (unsigned)args->arg[BINS].number[0];
	uint32_t row = op_below(policy_trivial.count, uniform);
	uint32_t bin = op_below(bins, uniform);

	return (struct augmentation){ &policy_trivial.rows[row], bin, bins,
				      uniform.next(uniform.arg) };
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	struct canvas c = op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL],
				    sample, image);
	struct augmentation step = draw(args, sample->uniform);

	op_augment(&c, &step, 1);
	canvas_end(&c, image);
}

static unsigned maps(const struct args *args, struct uniform uniform,
		     struct size in, struct warp_map *out)
{
	struct augmentation step = draw(args, uniform);

	return op_augment_maps(&step, 1, in, out);
}

const struct op op_trivial_augment = {
	.name = "trivial_augment",
	.help = "Apply one random operation of a random magnitude",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.maps = maps,
			.scratch = op_canvas_scratch,
		},
};

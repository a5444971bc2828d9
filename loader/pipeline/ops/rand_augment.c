/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { NUM_OPS, MAGNITUDE, BINS, INTERPOLATION, FILL, GROUP, LABEL };

static const struct param params[] = {
	[NUM_OPS] = { .name = "num_ops",
		      .kind = PARAM_INTEGERS,
		      .initial = "2",
		      .min_count = 1,
		      .max_count = 1,
		      .min = 0,
		      .max = OP_MAPS_MAX,
		      .help = "number of operations" },
	[MAGNITUDE] = { .name = "magnitude",
			.kind = PARAM_INTEGERS,
			.initial = "9",
			.min_count = 1,
			.max_count = 1,
			.min = 0,
			.max = 1023,
			.help = "index of the magnitude, from 0" },
	[BINS] = OP_PARAM_BINS,
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if (args->arg[MAGNITUDE].number[0] >= args->arg[BINS].number[0])
		return "magnitude must be below bins";
	return op_check_color(&args->arg[FILL]);
}

static unsigned draw(const struct args *args, struct uniform uniform,
		     struct augmentation *out)
{
	unsigned bin = (unsigned)args->arg[MAGNITUDE].number[0];
	unsigned bins = (unsigned)args->arg[BINS].number[0];
	unsigned count = (unsigned)args->arg[NUM_OPS].number[0];

	for (unsigned i = 0; i < count; i++) {
		uint32_t row = op_below(policy_rand.count, uniform);

		out[i] = (struct augmentation){ &policy_rand.rows[row], bin,
						bins,
						uniform.next(uniform.arg) };
	}
	return count;
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	struct canvas c = op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL],
				    sample, image);
	struct augmentation steps[OP_MAPS_MAX];

	op_augment(&c, steps, draw(args, sample->uniform, steps));
	canvas_end(&c, image);
}

static unsigned maps(const struct args *args, struct uniform uniform,
		     struct size in, struct warp_map *out)
{
	struct augmentation steps[OP_MAPS_MAX];
	unsigned count = draw(args, uniform, steps);

	return op_augment_maps(steps, count, in, out);
}

const struct op op_rand_augment = {
	.name = "rand_augment",
	.help = "Apply random operations of one magnitude",
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

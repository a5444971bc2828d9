/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/warp.h"

enum { DEGREES, INTERPOLATION, FILL, GROUP, LABEL };

static const struct param params[] = {
	[DEGREES] = { .name = "degrees",
		      .kind = PARAM_REALS,
		      .min_count = 1,
		      .max_count = 2,
		      .min = -3600,
		      .max = 3600,
		      .help = "greatest angle in both directions, or "
			      "\"LEAST,MOST\"; positive is counterclockwise" },
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_warp(&args->arg[DEGREES], &args->arg[FILL]);
}

static unsigned maps(const struct args *args, struct uniform uniform,
		     struct size in, struct warp_map *out)
{
	double degrees = op_about(&args->arg[DEGREES], uniform);
	struct affine map = affine_rotation(degrees, in.width, in.height);

	*out = warp_map_of(&map);
	return 1;
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	op_warp(maps, args, INTERPOLATION, FILL, sample, in, out);
}

const struct op op_rotate = {
	.name = "rotate",
	.help = "Rotate the image about its center by a random angle",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.maps = maps,
			.joins = true,
		},
};

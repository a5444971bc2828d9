/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

enum { DISTORTION, P, INTERPOLATION, FILL, GROUP, LABEL };

static const struct param params[] = {
	[DISTORTION] = { .name = "distortion",
			 .kind = PARAM_REALS,
			 .initial = "0.5",
			 .min_count = 1,
			 .max_count = 1,
			 .min = 0,
			 .max = 1,
			 .help = "greatest distance of a corner inward, as a "
				 "fraction of half a side" },
	[P] = OP_PARAM_P("1"),
	[INTERPOLATION] = OP_PARAM_WARP_SMOOTH,
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

/* Draws a whole number of pixels, up to this fraction of half a side. */
static double draw_inward(double part, uint32_t side, struct uniform uniform)
{
	return op_below((uint32_t)(part * (side / 2)) + 1, uniform);
}

/* Corners in the order top left, top right, bottom right, bottom left. */
static unsigned maps(const struct args *args, struct uniform uniform,
		     struct size in, struct warp_map *out)
{
	bool on = op_chance(&args->arg[P], uniform);
	double part = args->arg[DISTORTION].number[0];
	double right = in.width - 1.0, bottom = in.height - 1.0;
	const double from[4][2] = {
		{ 0, 0 }, { right, 0 }, { right, bottom }, { 0, bottom }
	};
	struct perspective map = { { 1, 0, 0, 0, 1 } };
	double to[4][2];

	for (unsigned i = 0; i < 4; i++) {
		double x = draw_inward(part, in.width, uniform);
		double y = draw_inward(part, in.height, uniform);

		to[i][0] = from[i][0] > 0 ? right - x : x;
		to[i][1] = from[i][1] > 0 ? bottom - y : y;
	}
	if (!on || !perspective_of(from, to, &map))
		map = (struct perspective){ { 1, 0, 0, 0, 1 } };
	out->divides = true;
	memcpy(out->m, map.m, sizeof(out->m));
	return 1;
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	op_warp(maps, args, INTERPOLATION, FILL, sample, in, out);
}

const struct op op_perspective = {
	.name = "perspective",
	.help = "Change the perspective of the image at random",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.maps = maps,
		},
};

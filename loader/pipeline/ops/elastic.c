/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/field.h"
#include "loader/pipeline/grid/warp.h"

enum { ALPHA, SIGMA, P, INTERPOLATION, FILL, GROUP, LABEL };

static const struct param params[] = {
	[ALPHA] = { .name = "alpha",
		    .kind = PARAM_REALS,
		    .initial = "50",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 0,
		    .max = 1 << 20,
		    .help = "twice the greatest distance before the "
			    "blur, in pixels" },
	[SIGMA] = { .name = "sigma",
		    .kind = PARAM_REALS,
		    .initial = "5",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 0.1,
		    .max = 64,
		    .help = "standard deviation of the blur, in pixels" },
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

static struct displacement_field field_of(const struct args *args)
{
	float scale = (float)(args->arg[ALPHA].number[0] / 2);

	return (struct displacement_field){ .sigma = args->arg[SIGMA].number[0],
					    .scale = { scale, scale } };
}

static uint64_t scratch(const struct args *args, struct size in)
{
	struct displacement_field field = field_of(args);

	return field_scratch(&field, in.width, in.height);
}

/* Draws the distance of each pixel along x and y. */
static void draw_moves(const struct args *args, const struct op_sample *sample,
		       uint32_t width, uint32_t height, const float *moves[2])
{
	bool on = op_chance(&args->arg[P], sample->uniform);
	double u = sample->uniform.next(sample->uniform.arg);
	struct displacement_field field = field_of(args);

	field.key = (uint64_t)(u * 0x1p53);
	if (!on)
		field.scale[0] = field.scale[1] = 0;
	field_fill(&field, width, height, sample->scratch, moves);
}

static void warp_grid(const struct args *args, const struct op_sample *sample,
		      const struct grid *in, const struct grid *out)
{
	const struct grid_warp warp = {
		(enum warp_how)args->arg[INTERPOLATION].choice,
		&args->arg[FILL], &args->arg[LABEL]
	};
	const float *moves[2];

	draw_moves(args, sample, in->width, in->height, moves);
	grid_warp_displaced(&warp, moves[0], moves[1], in, out);
}

static void redraw(const struct args *args, const struct op_sample *sample,
		   const struct image *in, const struct image *out)
{
	const float *moves[2];
	uint8_t fill[3];

	op_color(&args->arg[FILL], fill);
	draw_moves(args, sample, in->width, in->height, moves);
	warp_displaced(moves[0], moves[1],
		       (enum warp_how)args->arg[INTERPOLATION].choice, fill, in,
		       out, sample->seen);
}

const struct op op_elastic = {
	.name = "elastic",
	.help = "Move pixels by smooth random distances",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.redraw = redraw,
			.grid = warp_grid,
			.scratch = scratch,
		},
};

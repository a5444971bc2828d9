/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "fs/base/util/bytes.h"
#include "loader/pipeline/grid/grid.h"

enum { SIZE, FILL, P };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("height and width of the rectangle, one "
			       "number or \"H,W\""),
	[FILL] = OP_PARAM_FILL,
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

/* Draws the rectangle. Returns false if nothing is cut out. */
static bool draw_part(const struct args *args, struct uniform uniform,
		      struct size in, struct rect *out)
{
	struct size size = op_size(&args->arg[SIZE]);
	bool on = op_chance(&args->arg[P], uniform);

	out->height = (uint32_t)min_u64(size.height, in.height);
	out->width = (uint32_t)min_u64(size.width, in.width);
	out->y = op_below(in.height - out->height + 1, uniform);
	out->x = op_below(in.width - out->width + 1, uniform);
	return on;
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	const struct size size = { image->width, image->height };
	struct rect part;

	if (draw_part(args, sample->uniform, size, &part))
		op_fill(image, &part, &args->arg[FILL]);
}

static void cut_grid(const struct args *args, const struct op_sample *sample,
		     const struct grid *in, const struct grid *out)
{
	const struct size size = { in->width, in->height };
	struct rect part;

	grid_copy(in, false, out);
	if (draw_part(args, sample->uniform, size, &part))
		grid_fill(out, &part, &args->arg[FILL], NULL);
}

const struct op op_cutout = {
	.name = "cutout",
	.help = "Fill a random rectangle with a color",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.grid = cut_grid,
			.keeps_places = true,
		},
};

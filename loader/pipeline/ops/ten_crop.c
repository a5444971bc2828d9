/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { SIZE };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE(
		"height and width of each crop, one number or \"H,W\""),
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	struct size size = op_size(&args->arg[SIZE]);

	return op_infer_views(2 * CROP_CORNERS, size, size, in, out);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	struct size size = op_size(&args->arg[SIZE]);

	(void)uniform;
	out->mirror = out->view >= CROP_CORNERS;
	out->from = crop_corner(out->view % CROP_CORNERS, size.width,
				size.height, in.width, in.height);
	if (out->mirror)
		out->from.x = in.width - out->from.width - out->from.x;
	out->to = (struct size){ out->from.width, out->from.height };
}

const struct op op_ten_crop = {
	.name = "ten_crop",
	.help = "Crop like five_crop, also from the mirror image",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

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

	return op_infer_views(CROP_CORNERS, size, size, in, out);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	struct size size = op_size(&args->arg[SIZE]);

	(void)uniform;
	out->from = crop_corner(out->view, size.width, size.height, in.width,
				in.height);
	out->to = (struct size){ out->from.width, out->from.height };
}

const struct op op_five_crop = {
	.name = "five_crop",
	.help = "Crop the corners and the center, as five images",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};

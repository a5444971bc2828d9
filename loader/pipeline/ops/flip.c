/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { P };

static const struct param params[] = {
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

/* Mirroring changes no values, so it can follow a change of type. */
static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	if (in->kind != TYPE_IMAGE && in->kind != TYPE_GRID)
		return op_refuse_image(in);
	if (in->placed)
		return "must stand before custom operations";
	return in->layout == LAYOUT_HWC ? NULL : "must stand before chw";
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	out->from = (struct rect){ .width = in.width, .height = in.height };
	out->to = in;
	out->mirror = op_chance(&args->arg[P], uniform);
}

const struct op op_flip = {
	.name = "flip",
	.help = "Exchange left and right at random",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
			.mirrors = true,
		},
};

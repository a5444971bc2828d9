/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/op.h"

enum { P };

static const struct param params[] = {
	[P] = { .name = "p",
		.kind = PARAM_REALS,
		.initial = "0.5",
		.min_count = 1,
		.max_count = 1,
		.min = 0,
		.max = 1,
		.help = "the probability" },
	OP_PARAM_GROUP,
	{ 0 },
};

/* Values do not matter here, so types may stand before it. */
static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	return in->layout == LAYOUT_HWC ? NULL : "must stand before chw";
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	out->from = (struct rect){ .width = in.width, .height = in.height };
	out->to = in;
	out->mirror = uniform.next(uniform.arg) < args->arg[P].number[0];
}

const struct op op_flip = {
	.name = "flip",
	.help = "left and right exchanged, with a probability",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.draw = draw,
};

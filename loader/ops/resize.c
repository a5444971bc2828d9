/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { SIZE, INTERPOLATION };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("of the shorter side, or \"H,W\""),
	[INTERPOLATION] = OP_PARAM_INTERPOLATION,
	{ 0 },
};

/* floor(size * long / short), like torchvision; at most OP_SIZE_MAX. */
static uint32_t long_side(uint64_t size, uint32_t longer, uint32_t shorter)
{
	uint64_t v = size * longer / shorter;

	return v < OP_SIZE_MAX ? (uint32_t)v : OP_SIZE_MAX;
}

static struct size target(const struct arg *arg, struct size in)
{
	struct size out = op_size(arg);

	if (arg->count == 2)
		return out;
	if (in.width > in.height)
		out.width = long_side(out.width, in.width, in.height);
	else
		out.height = long_side(out.height, in.height, in.width);
	return out;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	struct size size = { .width = in->width, .height = in->height };

	if (size.width && size.height)
		size = target(&args->arg[SIZE], size);
	else if (args->arg[SIZE].count == 2)
		size = op_size(&args->arg[SIZE]);
	out->width = size.width;
	out->height = size.height;
	return op_infer_crop(in);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	(void)uniform;
	out->from = (struct rect){ .width = in.width, .height = in.height };
	out->to = target(&args->arg[SIZE], in);
	out->how = (enum interpolation)args->arg[INTERPOLATION].word;
}

const struct op op_resize = {
	.name = "resize",
	.help = "the whole image, resized",
	.kind = OP_GEOMETRY,
	.params = params,
	.infer = infer,
	.draw = draw,
};

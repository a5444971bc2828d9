/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/op.h"

enum { MAGNITUDE, P };

static const struct param params[] = {
	[MAGNITUDE] = { .name = "magnitude",
			.kind = PARAM_REALS,
			.min_count = 1,
			.max_count = 1,
			.min = 0,
			.max = 16,
			.help = "how far the factor may be from 1" },
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	return op_infer_colour(in);
}

static void operands(const struct args *args, enum dtype in, unsigned channel,
		     struct uniform uniform, float *out)
{
	(void)in;
	(void)channel;
	out[0] = op_factor(&args->arg[MAGNITUDE], &args->arg[P], uniform);
}

OP_CODE(float brightness(float v, float factor) { return factor * v; })

static float point(float v, const float *o)
{
	return brightness(v, o[0]);
}

const struct op op_brightness = {
	.name = "brightness",
	.help = "values times a random factor",
	.kind = OP_POINT,
	.params = params,
	.infer = infer,
	.num_operands = 1,
	.operands = operands,
	.point = point,
	.code = code,
};

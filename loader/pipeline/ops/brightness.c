/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { MAGNITUDE, P };

static const struct param params[] = {
	[MAGNITUDE] = OP_PARAM_MAGNITUDE,
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

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
	.help = "Multiply values by a random factor",
	.kind = OP_POINT,
	.params = params,
	.infer = op_infer_color,
	.value =
		&(const struct op_value){
			.num_operands = 1,
			.operands = operands,
			.point = point,
			.code = code,
		},
};

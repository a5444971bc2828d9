/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { P };

static const struct param params[] = {
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static void operands(const struct args *args, enum dtype in, unsigned channel,
		     struct uniform uniform, float *out)
{
	(void)in;
	(void)channel;
	out[0] = op_chance(&args->arg[P], uniform);
}

OP_CODE(float invert(float v, float on) { return on > 0 ? 255 - v : v; })

static float point(float v, const float *o)
{
	return invert(v, o[0]);
}

const struct op op_invert = {
	.name = "invert",
	.help = "Replace each value by 255 less the value",
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

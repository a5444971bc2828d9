/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { THRESHOLD, P };

static const struct param params[] = {
	[THRESHOLD] = { .name = "threshold",
			.kind = PARAM_REALS,
			.initial = "128",
			.min_count = 1,
			.max_count = 1,
			.min = 0,
			.max = 256,
			.help = "least value that is inverted" },
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static void operands(const struct args *args, enum dtype in, unsigned channel,
		     struct uniform uniform, float *out)
{
	(void)in;
	(void)channel;
	out[0] = op_chance(&args->arg[P], uniform)
			 ? (float)args->arg[THRESHOLD].number[0]
			 : __builtin_inff();
}

OP_CODE(float solarize(float v, float threshold) {
	return v >= threshold ? 255 - v : v;
})

static float point(float v, const float *o)
{
	return solarize(v, o[0]);
}

const struct op op_solarize = {
	.name = "solarize",
	.help = "Invert values from a threshold on",
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

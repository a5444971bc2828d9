/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { BITS, P };

static const struct param params[] = {
	[BITS] = { .name = "bits",
		   .kind = PARAM_INTEGERS,
		   .min_count = 1,
		   .max_count = 1,
		   .min = 1,
		   .max = 8,
		   .help = "number of upper bits to keep" },
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	if (in->kind != TYPE_IMAGE || in->dtype != DTYPE_U1)
		return "works on 8-bit images only";
	return NULL;
}

static void operands(const struct args *args, enum dtype in, unsigned channel,
		     struct uniform uniform, float *out)
{
	unsigned lost = 8 - (unsigned)args->arg[BITS].number[0];

	(void)in;
	(void)channel;
	out[0] = op_chance(&args->arg[P], uniform) ? (float)(1U << lost) : 1;
	out[1] = 1 / out[0];
}

OP_CODE(float posterize(float v, float step, float inverse) {
	return (float)(int)(v * inverse) * step;
})

static float point(float v, const float *o)
{
	return posterize(v, o[0], o[1]);
}

const struct op op_posterize = {
	.name = "posterize",
	.help = "Set the lower bits of values to 0",
	.kind = OP_POINT,
	.params = params,
	.infer = infer,
	.value =
		&(const struct op_value){
			.num_operands = 2,
			.operands = operands,
			.point = point,
			.code = code,
		},
};

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

OP_CODE(void grayscale(float v[3], float on) {
	float gray = 0.2989F * v[0] + 0.587F * v[1] + 0.114F * v[2];
	v[0] = on > 0 ? gray : v[0];
	v[1] = on > 0 ? gray : v[1];
	v[2] = on > 0 ? gray : v[2];
})

static void pixel(float v[3], const float *o)
{
	grayscale(v, o[0]);
}

const struct op op_grayscale = {
	.name = "grayscale",
	.help = "Replace the three channels by their gray",
	.kind = OP_PIXEL,
	.params = params,
	.infer = op_infer_color,
	.value =
		&(const struct op_value){
			.num_operands = 1,
			.operands = operands,
			.pixel = pixel,
			.code = code,
		},
};

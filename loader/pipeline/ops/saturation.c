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
	(void)channel;
	out[0] = op_factor(&args->arg[MAGNITUDE], &args->arg[P], uniform);
	out[1] = in == DTYPE_U1;
}

OP_CODE(void saturation(float v[3], float factor, float whole) {
	float gray = 0.2989F * v[0] + 0.587F * v[1] + 0.114F * v[2];
	gray = whole > 0 ? (float)(int)gray : gray;
	gray = (1 - factor) * gray;
	v[0] = factor * v[0] + gray;
	v[1] = factor * v[1] + gray;
	v[2] = factor * v[2] + gray;
})

static void pixel(float v[3], const float *o)
{
	saturation(v, o[0], o[1]);
}

const struct op op_saturation = {
	.name = "saturation",
	.help = "Blend colors with their gray by a random factor",
	.kind = OP_PIXEL,
	.params = params,
	.infer = op_infer_color,
	.value =
		&(const struct op_value){
			.num_operands = 2,
			.operands = operands,
			.pixel = pixel,
			.code = code,
		},
};

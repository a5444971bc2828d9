/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_U1, out);
}

const struct op op_uint8 = {
	.name = "uint8",
	.help = "Round values and limit them to 0..255",
	.kind = OP_DTYPE,
	.infer = infer,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_BF2, out);
}

const struct op op_bfloat16 = {
	.name = "bfloat16",
	.help = "Convert values to bfloat16",
	.kind = OP_DTYPE,
	.infer = infer,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_F4, out);
}

const struct op op_float = {
	.name = "float",
	.help = "Convert values to float32",
	.kind = OP_DTYPE,
	.infer = infer,
};

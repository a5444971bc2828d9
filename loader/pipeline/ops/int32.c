/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_I4, out);
}

const struct op op_int32 = {
	.name = "int32",
	.help = "Round values and limit them to 32 bits",
	.kind = OP_DTYPE,
	.infer = infer,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_I8, out);
}

const struct op op_int64 = {
	.name = "int64",
	.help = "Round values and limit them to 64 bits",
	.kind = OP_DTYPE,
	.infer = infer,
};

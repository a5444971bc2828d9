/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_dtype(in, DTYPE_F2, out);
}

const struct op op_half = {
	.name = "half",
	.help = "Convert values to float16",
	.kind = OP_DTYPE,
	.infer = infer,
};

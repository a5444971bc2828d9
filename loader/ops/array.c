/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

const struct op op_array = {
	.name = "array",
	.help = "the array that a value of bytes has, with its type",
	.kind = OP_LIST,
	.infer = infer,
	.list = op_copy_list,
};

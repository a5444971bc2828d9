/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

const struct op op_array = {
	.name = "array",
	.help = "Read the array that a bytes field stores, as a list",
	.kind = OP_LIST,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = op_copy_list,
		},
};

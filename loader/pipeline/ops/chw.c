/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_layout(in, LAYOUT_CHW, out);
}

const struct op op_chw = {
	.name = "chw",
	.help = "Order the axes channel, height, width",
	.kind = OP_LAYOUT,
	.infer = infer,
};

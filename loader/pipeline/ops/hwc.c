/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_layout(in, LAYOUT_HWC, out);
}

const struct op op_hwc = {
	.name = "hwc",
	.help = "Order the axes height, width, channel",
	.kind = OP_LAYOUT,
	.infer = infer,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	return in->fresh ? NULL : "must be the only operation of its field";
}

const struct op op_drop = {
	.name = "drop",
	.help = "Make no output of this field",
	.kind = OP_SINK,
	.infer = infer,
};

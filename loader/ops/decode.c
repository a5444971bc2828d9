/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

static const struct param params[] = {
	{ .name = "quality",
	  .kind = PARAM_WORD,
	  .initial = "default",
	  .words = "default|exact|draft", /* as enum quality */
	  .help = "which pixels decoding may give" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	return in->fresh ? NULL : "must be the first operation";
}

const struct op op_decode = {
	.name = "decode",
	.help = "the quality of JPEG decoding",
	.kind = OP_DECODE,
	.params = params,
	.infer = infer,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { DEVICE };

static const struct param params[] = {
	[DEVICE] = { .name = "device",
		     .kind = PARAM_INTEGERS,
		     .initial = "0",
		     .min_count = 1,
		     .max_count = 1,
		     .max = OP_DEVICE_MAX,
		     .help = "the GPU's number" },
	[OP_DEVICE_POINT] = { .name = "point",
			      .kind = PARAM_WORD,
			      .initial = "here",
			      .words = "here|auto", /* 1: OP_DEVICE_AUTO */
			      .help = "what comes after it runs there, or wherever "
				      "there is more time for it" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	if (in->kind == TYPE_RAGGED)
		return "has no use for bytes and JSON";
	if (op_is_list(in))
		return "has no use for lists, which stay in the processor's "
		       "memory; pad_to(LENGTH) makes arrays of them";
	if (in->device)
		return "stands there already";
	out->device = 1 + (unsigned)args->arg[DEVICE].number[0];
	return NULL;
}

const struct op op_cuda = {
	.name = "cuda",
	.help = "from here on a GPU",
	.kind = OP_DEVICE,
	.params = params,
	.infer = infer,
};

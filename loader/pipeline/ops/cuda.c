/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { DEVICE };

static const struct param params[] = {
	[DEVICE] = { .name = "device",
		     .kind = PARAM_INTEGERS,
		     .initial = "0",
		     .min_count = 1,
		     .max_count = 1,
		     .max = OP_DEVICE_MAX,
		     .help = "number of the GPU" },
	[OP_DEVICE_PLACEMENT] = { .name = "placement",
				  .kind = PARAM_CHOICE,
				  .initial = "gpu",
				  /* 1: OP_DEVICE_AUTO */
				  .choices = "gpu|auto",
				  .help = "execution device of the operations "
					  "after it: always the GPU, or the one "
					  "with more time left" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	if (in->kind == TYPE_RAGGED)
		return "does not work on bytes and JSON";
	if (op_is_list(in))
		return "does not work on lists, which stay in CPU "
		       "memory; convert them to arrays by "
		       "pad_to(LENGTH)";
	if (in->device)
		return "is in this statement already";
	out->device = 1 + (unsigned)args->arg[DEVICE].number[0];
	return NULL;
}

const struct op op_cuda = {
	.name = "cuda",
	.help = "Give the output on a GPU, and run later "
		"operations there",
	.kind = OP_DEVICE,
	.params = params,
	.infer = infer,
};

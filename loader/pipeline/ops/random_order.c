/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { OPS, GROUP };

static const struct param params[] = {
	[OPS] = OP_PARAM_OPS("lists of operations, separated by commas", 2,
			     OP_BRANCHES_MAX),
	[GROUP] = OP_PARAM_GROUP,
	{ 0 },
};

static size_t pick(const struct args *args, size_t num_lists,
		   struct uniform uniform, unsigned *out)
{
	(void)args;
	op_shuffle((unsigned)num_lists, uniform, out);
	return num_lists;
}

const struct op op_random_order = {
	.name = "random_order",
	.help = "Apply several lists of operations in a random order",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.branches =
		&(const struct op_branches){
			.pick = pick,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { OPS, P };

static const struct param params[] = {
	[OPS] = OP_PARAM_OPS("operations joined by `|'", 1, 1),
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

static size_t pick(const struct args *args, size_t num_lists,
		   struct uniform uniform, unsigned *out)
{
	out[0] = 0;
	return op_chance(&args->arg[P], uniform) ? num_lists : 0;
}

const struct op op_random_apply = {
	.name = "random_apply",
	.help = "Apply operations one after the other, or "
		"none of them",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.branches =
		&(const struct op_branches){
			.pick = pick,
		},
};

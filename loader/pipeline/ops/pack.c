/* SPDX-License-Identifier: Apache-2.0 */
/* This operation does not change samples. list_rows_cut() cuts the rows when it
   joins a batch. */
#include "loader/pipeline/op/op.h"

enum { ROWS };

static const struct param params[] = {
	[ROWS] = { .name = "rows",
		   .kind = PARAM_INTEGERS,
		   .min_count = 1,
		   .max_count = 1,
		   .min = 1,
		   .max = OP_ROWS_MAX,
		   .help = "greatest number of rows of a batch, such as tokens" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_list(in, out);

	if (wrong)
		return wrong;
	out->kind = TYPE_PACKED;
	out->most = (uint64_t)args->arg[ROWS].number[0];
	return NULL;
}

const struct op op_pack = {
	.name = "pack",
	.help = "Limit the rows of a batch by cutting its "
		"longest lists",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = op_copy_list,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"

enum { LENGTH };

static const struct param params[] = {
	[LENGTH] = { .name = "length",
		     .kind = PARAM_INTEGERS,
		     .min_count = 1,
		     .max_count = 1,
		     .min = 0,
		     .max = OP_ROWS_MAX,
		     .help = "greatest number of rows" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

static uint64_t most(const struct args *args, uint64_t rows)
{
	return min_u64(rows, (uint64_t)args->arg[LENGTH].number[0]);
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	(void)sample;
	*rows = most(args, in->rows);
	memcpy(to, in->values, *rows * op_row_bytes(out));
	return NULL;
}

const struct op op_truncate = {
	.name = "truncate",
	.help = "Keep the first rows of a list",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.most = most,
			.map = list,
		},
};

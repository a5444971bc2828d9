/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include <string.h>

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	(void)args;
	(void)sample;
	(void)out;
	memcpy(to, in->values, in->rows * op_row_bytes(in->type));
	*rows = in->rows;
	return NULL;
}

const struct op op_array = {
	.name = "array",
	.help = "the array that a value of bytes has, with its type",
	.kind = OP_LIST,
	.infer = infer,
	.list = list,
};

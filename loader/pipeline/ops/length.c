/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_list(in, out);

	(void)args;
	out->kind = TYPE_ARRAY;
	out->dtype = DTYPE_I8;
	out->ndim = 0;
	return wrong;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	(void)args;
	(void)sample;
	(void)out;
	(void)rows;
	memcpy(to, &in->rows, sizeof(in->rows));
	return NULL;
}

const struct op op_length = {
	.name = "length",
	.help = "Count the rows of a list",
	.kind = OP_LIST,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
		},
};

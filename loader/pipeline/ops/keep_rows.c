/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

enum { OF };

static const struct param params[] = {
	[OF] = { .name = "of",
		 .kind = PARAM_NAME,
		 .help = "name of the output of the boxes" },
	{ 0 },
};

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
	const struct op_of *of = sample->of;
	size_t size = op_row_bytes(out);

	(void)args;
	if (in->rows != of->num_kept)
		return "the list and the boxes have different "
		       "numbers of rows";
	*rows = 0;
	for (uint64_t i = 0; i < of->num_kept; i++) {
		if (of->kept[i])
			memcpy((uint8_t *)to + (*rows)++ * size,
			       (const uint8_t *)in->values + i * size, size);
	}
	return NULL;
}

const struct op op_keep_rows = {
	.name = "keep_rows",
	.help = "Keep the rows of a list whose boxes an output keeps",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
			.of = OP_OF_LIST,
		},
};

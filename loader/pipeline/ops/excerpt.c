/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"

enum { LENGTH, AT };

/* Keep the order of the choices of at. */
enum { RANDOM, CENTER, START, END };

static const struct param params[] = {
	[LENGTH] = { .name = "length",
		     .kind = PARAM_INTEGERS,
		     .min_count = 1,
		     .max_count = 1,
		     .min = 1,
		     .max = OP_ROWS_MAX,
		     .help = "number of rows; a shorter list stays as it is" },
	[AT] = { .name = "at",
		 .kind = PARAM_CHOICE,
		 .initial = "random",
		 .choices = "random|center|start|end",
		 .help = "position in the value" },
	OP_PARAM_GROUP,
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

/* Returns the number of rows to skip at the start. */
static uint64_t first_of(const struct args *args, struct uniform uniform,
			 uint64_t left)
{
	switch (args->arg[AT].choice) {
	case CENTER:
		return left / 2;
	case START:
		return 0;
	case END:
		return left;
	default:
		return op_below((uint32_t)left + 1, uniform);
	}
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	uint64_t count = most(args, in->rows), left = in->rows - count, first;
	size_t size = op_row_bytes(out);

	if (left >= UINT32_MAX)
		return "the list has 4294967296 rows or more";
	first = first_of(args, sample->uniform, left);
	memcpy(to, (const char *)in->values + first * size, count * size);
	*rows = count;
	return NULL;
}

const struct op op_excerpt = {
	.name = "excerpt",
	.help = "Take consecutive rows of a list",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.most = most,
			.map = list,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

enum { OF };

/* The numbers of a sample: two rows of a matrix, sizes, and the matrix's last
   row. */
enum { MATRIX = 6, LAST = 11, NUMBERS = 14 };

static const struct param params[] = {
	[OF] = { .name = "of",
		 .kind = PARAM_NAME,
		 .help = "name of the output of the image" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	if (in->kind != TYPE_IMAGE || !in->fresh)
		return "must be the first operation, as in `p = "
		       "params(image)'";
	out->kind = TYPE_ARRAY;
	out->dtype = DTYPE_F8;
	out->ndim = 1;
	out->shape[0] = NUMBERS;
	return NULL;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	const struct op_of *of = sample->of;
	struct move all = move_none(of->size.width, of->size.height);
	double v[NUMBERS] = { 0 };

	(void)args;
	(void)in;
	(void)out;
	(void)rows;
	for (size_t i = 0; i < of->num_moves; i++)
		all = move_both(&all, &of->moves[i]);
	memcpy(v, all.m, MATRIX * sizeof(*v));
	v[MATRIX] = of->size.height;
	v[MATRIX + 1] = of->size.width;
	v[MATRIX + 2] = all.height;
	v[MATRIX + 3] = all.width;
	v[MATRIX + 4] = move_is_mirrored(&all);
	memcpy(v + LAST, all.m + MATRIX, (NUMBERS - LAST) * sizeof(*v));
	memcpy(to, v, sizeof(v));
	return NULL;
}

const struct op op_params = {
	.name = "params",
	.help = "Describe where the pixels of an output come from",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
			.of = OP_OF_IMAGE,
		},
};

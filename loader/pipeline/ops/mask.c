/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { BITS, WIDE = 16 };

static const struct param params[] = {
	[BITS] = { .name = "bits",
		   .kind = PARAM_INTEGERS,
		   .initial = "8",
		   .min_count = 1,
		   .max_count = 1,
		   .min = 8,
		   .max = WIDE,
		   .help = "bits of a class in a PNG, 8 or 16" },
	{ 0 },
};

static const char *check(const struct args *args)
{
	double bits = args->arg[BITS].number[0];

	return bits == 8 || bits == WIDE ? NULL : "bits must be 8 or 16";
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	bool wide = args->arg[BITS].number[0] == WIDE;

	if (!in->fresh)
		return "must be the first operation";
	if (in->kind == TYPE_ARRAY)
		return "works on images, arrays of rows and columns, and bytes";
	if (!dtype_is_whole(in->dtype))
		return "works on whole numbers only";
	out->mask = true;
	if (in->kind == TYPE_GRID)
		return NULL;
	if (wide && in->kind == TYPE_IMAGE)
		return "takes 8 bits only for image fields";
	out->kind = TYPE_GRID;
	out->dtype = wide ? DTYPE_U2 : DTYPE_U1;
	return NULL;
}

const struct op op_mask = {
	.name = "mask",
	.help = "Treat values as classes: do not average them",
	.kind = OP_MASK,
	.params = params,
	.check = check,
	.infer = infer,
};

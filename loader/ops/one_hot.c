/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include <string.h>

enum { CLASSES, CLASSES_MAX = 1 << 20 };

static const struct param params[] = {
	[CLASSES] = { .name = "classes",
		      .kind = PARAM_INTEGERS,
		      .min_count = 1,
		      .max_count = 1,
		      .min = 1,
		      .max = CLASSES_MAX,
		      .help = "how many there are" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_scalar(in);

	if (wrong)
		return wrong;
	if (!dtype_is_whole(in->dtype))
		return "works on whole numbers only";
	out->dtype = DTYPE_F4;
	out->ndim = 1;
	out->shape[0] = (uint64_t)args->arg[CLASSES].number[0];
	return NULL;
}

static const char *array(const struct args *args,
			 const struct op_sample *sample, const struct type *in,
			 const void *from, void *to)
{
	const float one = 1;
	int64_t label;

	(void)sample;
	dtype_convert(in->dtype, from, DTYPE_I8, &label, 1);
	if (label < 0 || (double)label >= args->arg[CLASSES].number[0])
		return "the label is none of the classes";
	memset(to, 0, (size_t)args->arg[CLASSES].number[0] * sizeof(one));
	memcpy((char *)to + (size_t)label * sizeof(one), &one, sizeof(one));
	return NULL;
}

const struct op op_one_hot = {
	.name = "one_hot",
	.help = "a label becomes 1 in its place among zeros, float32",
	.kind = OP_ARRAY,
	.params = params,
	.infer = infer,
	.array = array,
};

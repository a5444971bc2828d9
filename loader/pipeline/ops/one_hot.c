/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

enum { CLASSES, CLASSES_MAX = 1 << 20 };

static const struct param params[] = {
	[CLASSES] = { .name = "classes",
		      .kind = PARAM_INTEGERS,
		      .min_count = 1,
		      .max_count = 1,
		      .min = 1,
		      .max = CLASSES_MAX,
		      .help = "number of classes" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	bool mixed = in->mixed && in->dtype == DTYPE_F4;
	const char *wrong = mixed ? NULL : op_infer_scalar(in);

	if (wrong)
		return wrong;
	if (!mixed && !dtype_is_whole(in->dtype))
		return "works on whole numbers only";
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	out->dtype = DTYPE_F4;
	out->ndim = 1;
	out->shape[0] = (uint64_t)args->arg[CLASSES].number[0];
	out->mixed = false;
	return NULL;
}

/* Adds a weight at the index of a label. Returns false if the label is out of
   range. */
static bool put(const struct args *args, int64_t label, float share, void *to)
{
	if (label < 0 || (double)label >= args->arg[CLASSES].number[0])
		return false;
	memcpy((char *)to + (size_t)label * sizeof(share), &share,
	       sizeof(share));
	return true;
}

/* Writes the two labels and the weight of mixed samples. */
static bool put_both(const struct args *args, const void *from, void *to)
{
	float both[3];
	int64_t own, other;

	memcpy(both, from, sizeof(both));
	dtype_convert(DTYPE_F4, &both[0], DTYPE_I8, &own, 1);
	dtype_convert(DTYPE_F4, &both[1], DTYPE_I8, &other, 1);
	if (own == other)
		return put(args, own, 1, to);
	return put(args, other, 1 - both[2], to) && put(args, own, both[2], to);
}

static const char *array(const struct args *args,
			 const struct op_sample *sample, const struct type *in,
			 const void *from, void *to)
{
	int64_t label;
	bool fits;

	(void)sample;
	memset(to, 0, (size_t)args->arg[CLASSES].number[0] * sizeof(float));
	if (in->mixed) {
		fits = put_both(args, from, to);
	} else {
		dtype_convert(in->dtype, from, DTYPE_I8, &label, 1);
		fits = put(args, label, 1, to);
	}
	return fits ? NULL : "the label is not from 0 to classes - 1";
}

const struct op op_one_hot = {
	.name = "one_hot",
	.help = "Convert a class to 1 at its index among "
		"zeros, float32",
	.kind = OP_ARRAY,
	.params = params,
	.infer = infer,
	.array =
		&(const struct op_array){
			.map = array,
		},
};

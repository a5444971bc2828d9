/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/pipeline/op/sample_ids.h"

enum { IDS, LABEL };

static const struct param params[] = {
	[IDS] = { .name = "ids",
		  .kind = PARAM_NAME,
		  .help = "ids of the samples, as \"3,17\", or a file of ids" },
	[LABEL] = { .name = "label",
		    .kind = PARAM_REALS,
		    .min_count = 1,
		    .max_count = 1,
		    .min = -0x1p53,
		    .max = 0x1p53,
		    .help = "new label" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	return op_infer_scalar(in);
}

static int load(struct args *args, char *why, size_t size)
{
	struct sample_ids *ids;
	int r = sample_ids_open(args->arg[IDS].text, &ids, why, size);

	if (!r)
		args->loaded = ids;
	return r;
}

static void unload(void *loaded)
{
	sample_ids_close(loaded);
}

static const char *array(const struct args *args,
			 const struct op_sample *sample, const struct type *in,
			 const void *from, void *to)
{
	if (sample_ids_has(args->loaded, sample->id))
		dtype_convert(DTYPE_F8, &args->arg[LABEL].number[0], in->dtype,
			      to, 1);
	else
		dtype_convert(in->dtype, from, in->dtype, to, 1);
	return NULL;
}

const struct op op_replace_label = {
	.name = "replace_label",
	.help = "Replace the labels of some samples",
	.kind = OP_ARRAY,
	.params = params,
	.infer = infer,
	.load = load,
	.unload = unload,
	.array =
		&(const struct op_array){
			.map = array,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"

enum { LENGTH, VALUE, SIDE, MULTIPLE };

/* Keep the order of the choices of side. */
enum { RIGHT, LEFT };

static const struct param params[] = {
	[LENGTH] = { .name = "length",
		     .kind = PARAM_INTEGERS,
		     .min_count = 1,
		     .max_count = 1,
		     .min = 1,
		     .max = OP_ROWS_MAX,
		     .choices = "batch",
		     .help = "number of rows; batch: that of the batch's "
			     "longest list" },
	[VALUE] = { .name = "value",
		    .kind = PARAM_REALS,
		    .initial = "0",
		    .min_count = 1,
		    .max_count = 1,
		    .min = -0x1p53,
		    .max = 0x1p53,
		    .help = "value of the new rows" },
	[SIDE] = { .name = "side",
		   .kind = PARAM_CHOICE,
		   .initial = "right",
		   .choices = "right|left",
		   .help = "side of the new rows" },
	[MULTIPLE] = { .name = "multiple",
		       .kind = PARAM_INTEGERS,
		       .initial = "1",
		       .min_count = 1,
		       .max_count = 1,
		       .min = 1,
		       .max = OP_SIZE_MAX,
		       .help = "with batch, the length is a multiple of this number" },
	{ 0 },
};

static bool is_of_batch(const struct args *args)
{
	return args->arg[LENGTH].choice >= 0;
}

static const char *check(const struct args *args)
{
	return args->arg[MULTIPLE].given && !is_of_batch(args)
		       ? "multiple needs the length batch"
		       : NULL;
}

static uint64_t length_of(const struct args *args)
{
	return (uint64_t)args->arg[LENGTH].number[0];
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_list(in, out);

	if (wrong)
		return wrong;
	out->kind = is_of_batch(args) ? TYPE_PADDED : TYPE_ARRAY;
	out->padding = (struct padding){
		.value = args->arg[VALUE].number[0],
		.multiple = (uint32_t)args->arg[MULTIPLE].number[0],
		.left = args->arg[SIDE].choice == LEFT,
	};
	if (is_of_batch(args))
		return NULL;
	memcpy(out->shape + 1, in->shape, in->ndim * sizeof(*in->shape));
	out->shape[0] = length_of(args);
	out->ndim = in->ndim + 1;
	return NULL;
}

static uint8_t *fill(uint8_t *to, const struct args *args, enum dtype dtype,
		     uint64_t count)
{
	size_t size = dtype_size(dtype);
	uint8_t value[8];

	dtype_convert(DTYPE_F8, &args->arg[VALUE].number[0], dtype, value, 1);
	for (uint64_t i = 0; i < count; i++)
		to = mempcpy(to, value, size);
	return to;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	uint64_t length = is_of_batch(args) ? in->rows : length_of(args);
	uint64_t kept = min_u64(in->rows, length);
	uint64_t added = (length - kept) * op_elements(in->type);

	(void)sample;
	if (args->arg[SIDE].choice == LEFT)
		to = fill(to, args, out->dtype, added);
	to = mempcpy(to, in->values, kept * op_row_bytes(in->type));
	if (args->arg[SIDE].choice == RIGHT)
		fill(to, args, out->dtype, added);
	*rows = in->rows;
	return NULL;
}

const struct op op_pad_to = {
	.name = "pad_to",
	.help = "Cut or fill lists to one length",
	.kind = OP_LIST,
	.params = params,
	.check = check,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <math.h>

#include "loader/pipeline/list/numbers.h"

enum { TYPE, ROW, ROW_MAX = 1 << 20 };

/* Keep the order of the choices of type. */
static const enum dtype dtypes[] = {
	DTYPE_F4, DTYPE_F8, DTYPE_F2, DTYPE_I8,
	DTYPE_I4, DTYPE_I2, DTYPE_I1, DTYPE_U1,
};

static const struct param params[] = {
	[TYPE] = { .name = "type",
		   .kind = PARAM_CHOICE,
		   .initial = "float32",
		   .choices = "float32|float64|float16|int64|int32|int16|int8|"
			      "uint8",
		   .help = "type of the numbers" },
	[ROW] = { .name = "row",
		  .kind = PARAM_INTEGERS,
		  .initial = "",
		  .min_count = 1,
		  .max_count = NUMBERS_NDIM_MAX - 1,
		  .min = 1,
		  .max = OP_SIZE_MAX,
		  .help = "shape of a row (default: a number)" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	uint64_t count = 1;

	if (in->kind != TYPE_RAGGED || !in->fresh)
		return "works on JSON and bytes fields only, as the "
		       "first operation";
	out->kind = TYPE_LIST;
	out->is_array = false;
	out->dtype = dtypes[args->arg[TYPE].choice];
	out->ndim = args->arg[ROW].count;
	for (uint32_t i = 0; i < out->ndim; i++) {
		out->shape[i] = (uint64_t)args->arg[ROW].number[i];
		count *= out->shape[i];
		if (count > ROW_MAX)
			return "a row has at most 1048576 numbers";
	}
	return NULL;
}

/* A number has a digit, and a comma or a bracket. The last row may lack
   numbers. */
static uint64_t most(const struct args *args, uint64_t bytes)
{
	uint64_t row = 1;

	for (unsigned i = 0; i < args->arg[ROW].count; i++)
		row *= (uint64_t)args->arg[ROW].number[i];
	return bytes / 2 / row + 1;
}

struct json_output {
	enum dtype dtype;
	char *at;
};

static const char *put_whole(const struct number *n, struct json_output *out)
{
	int64_t back;

	if (!n->is_whole)
		return "a number has a fraction, or more than 64 bits";
	dtype_convert(DTYPE_I8, &n->whole, out->dtype, out->at, 1);
	dtype_convert(out->dtype, out->at, DTYPE_I8, &back, 1);
	return back == n->whole ? NULL : "a number does not fit the type";
}

/* Refuse a number that is too large for the type, because it would become
   infinite. */
static const char *put_real(const struct number *n, struct json_output *out)
{
	double back;

	dtype_convert(DTYPE_F8, &n->real, out->dtype, out->at, 1);
	dtype_convert(out->dtype, out->at, DTYPE_F8, &back, 1);
	return isfinite(back) ? NULL : "a number does not fit the type";
}

static const char *put(const struct number *n, void *arg)
{
	struct json_output *out = arg;
	const char *wrong = dtype_is_whole(out->dtype) ? put_whole(n, out)
						       : put_real(n, out);

	out->at += dtype_size(out->dtype);
	return wrong;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	struct json_output output = { out->dtype, to };

	(void)args;
	(void)sample;
	return numbers_read(in->values, in->rows, out->ndim, out->shape, put,
			    &output, rows);
}

const struct op op_json = {
	.name = "json",
	.help = "Read the numbers of a JSON array, as a list",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.takes_bytes = true,
			.most = most,
			.map = list,
		},
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "fs/base/util/bytes.h"
#include "loader/util/exact_math.h"

enum { FACTOR, UNIT };

/* Keep the order of the choices of unit. */
enum { UNIT_FACTOR, UNIT_DB };

/* Number of values to multiply at a time. */
enum { LOT = 256 };

static const double DB_MAX = 200;
/* ln(10) / 20: the logarithm of one decibel of amplitude. */
static const double LOG_OF_DB = 0.11512925464970228;

static const struct param params[] = {
	[FACTOR] = { .name = "factor",
		     .kind = PARAM_REALS,
		     .min_count = 1,
		     .max_count = 2,
		     .min = -1e9,
		     .max = 1e9,
		     .help = "factor, or \"LEAST,MOST\"" },
	[UNIT] = { .name = "unit",
		   .kind = PARAM_CHOICE,
		   .initial = "factor",
		   .choices = "factor|db",
		   .help = "unit of the factor; db: decibels, 20 log10 of it" },
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	const struct arg *factor = &args->arg[FACTOR];

	for (unsigned i = 0; i < factor->count; i++) {
		if (args->arg[UNIT].choice == UNIT_DB &&
		    (factor->number[i] > DB_MAX || factor->number[i] < -DB_MAX))
			return "decibels are from -200 to 200";
	}
	return op_check_range(factor);
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

static double draw(const struct args *args, struct uniform uniform)
{
	double v = op_within(&args->arg[FACTOR], uniform);

	return args->arg[UNIT].choice == UNIT_DB ? exact_exp(v * LOG_OF_DB) : v;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	double factor = draw(args, sample->uniform), lot[LOT];
	uint64_t count = in->rows * op_elements(out), n;
	size_t size = dtype_size(out->dtype);

	for (uint64_t i = 0; i < count; i += n) {
		n = min_u64(count - i, LOT);
		dtype_convert(out->dtype, (const char *)in->values + i * size,
			      DTYPE_F8, lot, n);
		for (uint64_t k = 0; k < n; k++)
			lot[k] *= factor;
		dtype_convert(DTYPE_F8, lot, out->dtype, (char *)to + i * size,
			      n);
	}
	*rows = in->rows;
	return NULL;
}

const struct op op_gain = {
	.name = "gain",
	.help = "Multiply the values of a list by a factor, "
		"fixed or random",
	.kind = OP_LIST,
	.params = params,
	.check = check,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
		},
};

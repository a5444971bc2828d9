/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/list/rate.h"

enum { OLD, NEW, WIDTH, ROLLOFF };

/* Maximum number of samples per second. */
enum { RATE_MAX = 768000, RATIO_MAX = 256, WIDTH_MAX = 256 };

/* Number of samples to convert at a time. */
enum { LOT = 256 };

static const struct param params[] = {
	[OLD] = { .name = "old",
		  .kind = PARAM_INTEGERS,
		  .min_count = 1,
		  .max_count = 1,
		  .min = 1,
		  .max = RATE_MAX,
		  .help = "rate of the input, in samples per second" },
	[NEW] = { .name = "new",
		  .kind = PARAM_INTEGERS,
		  .min_count = 1,
		  .max_count = 1,
		  .min = 1,
		  .max = RATE_MAX,
		  .help = "rate of the result, in samples per second" },
	[WIDTH] = { .name = "width",
		    .kind = PARAM_INTEGERS,
		    .initial = "6",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 1,
		    .max = WIDTH_MAX,
		    .help = "zero crossings of the filter on each side" },
	[ROLLOFF] = { .name = "rolloff",
		      .kind = PARAM_REALS,
		      .initial = "0.99",
		      .min_count = 1,
		      .max_count = 1,
		      .min = 0.1,
		      .max = 1,
		      .help = "cutoff frequency, as a fraction of half the "
			      "lower rate" },
	{ 0 },
};

static const char *check(const struct args *args)
{
	double old = args->arg[OLD].number[0], new = args->arg[NEW].number[0];

	return old > RATIO_MAX * new || new > RATIO_MAX *old
		       ? "one rate is at most 256 times the other"
		       : NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	return op_infer_list(in, out);
}

static int load(struct args *args, char *why, size_t size)
{
	struct rate *rate = calloc(1, sizeof(*rate));
	int r;

	if (!rate)
		return -ENOMEM;
	r = rate_init(rate, (uint32_t)args->arg[OLD].number[0],
		      (uint32_t)args->arg[NEW].number[0],
		      (unsigned)args->arg[WIDTH].number[0],
		      args->arg[ROLLOFF].number[0]);
	if (!r) {
		args->loaded = rate;
		return 0;
	}
	free(rate);
	if (r != -E2BIG)
		return r;
	snprintf(why, size,
		 "old and new are no ratio of small numbers: the filter would "
		 "have more than %d weights",
		 RATE_WEIGHTS_MAX);
	return -EINVAL;
}

static void unload(void *loaded)
{
	if (loaded)
		rate_fini(loaded);
	free(loaded);
}

static uint64_t most(const struct args *args, uint64_t rows)
{
	return rate_samples(args->loaded, rows);
}

/* A channel of a list: every `step`-th value. */
struct channel {
	enum dtype dtype;
	const char *values;
	uint64_t rows;
	size_t step; /* bytes */
};

static void read_lot(const struct channel *c, uint64_t row, size_t count,
		     double *out)
{
	size_t size = dtype_size(c->dtype);
	const char *from = c->values + row * c->step;

	if (c->step == size) {
		dtype_convert(c->dtype, from, DTYPE_F8, out, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		dtype_convert(c->dtype, from + i * c->step, DTYPE_F8, out + i,
			      1);
}

/* Sums in the order of the samples. Samples outside the list are 0. */
static double sum_of(const struct channel *c, int64_t first,
		     const float *weights, uint32_t taps)
{
	uint64_t begin = first < 0 ? (uint64_t)-first : 0, n;
	uint64_t end =
		first >= (int64_t)c->rows
			? begin
			: min_u64(taps, (uint64_t)((int64_t)c->rows - first));
	double sum = 0, lot[LOT];

	for (uint64_t k = begin; k < end; k += n) {
		n = min_u64(end - k, LOT);
		read_lot(c, (uint64_t)(first + (int64_t)k), n, lot);
		for (uint64_t i = 0; i < n; i++)
			sum += lot[i] * (double)weights[k + i];
	}
	return sum;
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	const struct rate *rate = args->loaded;
	uint64_t channels = op_elements(out);
	size_t size = dtype_size(out->dtype);
	char *at = to;

	(void)sample;
	*rows = rate_samples(rate, in->rows);
	for (uint64_t n = 0; n < *rows; n++) {
		const float *weights;
		int64_t first = rate_place(rate, n, &weights);

		for (uint64_t c = 0; c < channels; c++, at += size) {
			struct channel channel = { out->dtype,
						   (const char *)in->values +
							   c * size,
						   in->rows, channels * size };
			double sum =
				sum_of(&channel, first, weights, rate->taps);

			dtype_convert(DTYPE_F8, &sum, out->dtype, at, 1);
		}
	}
	return NULL;
}

const struct op op_resample = {
	.name = "resample",
	.help = "Convert the sampling rate of sound",
	.kind = OP_LIST,
	.params = params,
	.check = check,
	.infer = infer,
	.load = load,
	.unload = unload,
	.list =
		&(const struct op_list){
			.most = most,
			.map = list,
		},
};

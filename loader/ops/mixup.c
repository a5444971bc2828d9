/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include <string.h>

#include "fs/util/bytes.h"
#include "loader/graph/beta.h"

enum { ALPHA, LAMBDA };

/* In the order of the words of lambda. */
enum { OF_BATCH, OF_SAMPLE };

/* Image and label are nearly always mixed together, so both have the same group
   by default. */
static const struct param params[] = {
	[ALPHA] = { .name = "alpha",
		    .kind = PARAM_REALS,
		    .min_count = 1,
		    .max_count = 1,
		    .min = 0x1p-10,
		    .max = 0x1p10,
		    .help = "lambda is of Beta(alpha, alpha)" },
	[LAMBDA] = { .name = "lambda",
		     .kind = PARAM_WORD,
		     .initial = "batch",
		     .words = "batch|sample",
		     .help = "what has one of its own" },
	{ .name = "group",
	  .kind = PARAM_NAME,
	  .initial = "0",
	  .help = "operations of one group share their random numbers" },
	{ 0 },
};

/* The result for a label: it, the other label, and the share of the first. */
enum { LABELS = 3 };

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	if (in->kind == TYPE_IMAGE)
		return op_infer_image(args, in, out);
	if (in->kind != TYPE_ARRAY ||
	    (in->dtype != DTYPE_F4 && (in->ndim || !dtype_is_whole(in->dtype))))
		return "works on 8-bit images, whole numbers, and float32";
	if (in->device)
		return "runs on the processor; it must stand before cuda";
	if (in->dtype == DTYPE_F4)
		return NULL;
	out->dtype = DTYPE_F4;
	out->ndim = 1;
	out->shape[0] = LABELS;
	return NULL;
}

/* This form keeps equal values exactly. */
static inline float mix(float own, float other, float share)
{
	return other + share * (own - other);
}

/* Compilers vectorize loops of constant length. */
enum { LOT = 64 };

static void mix_bytes(const uint8_t *own, const uint8_t *other, size_t count,
		      float share, uint8_t *out)
{
	size_t i = 0;

	for (; i + LOT <= count; i += LOT) {
		for (size_t k = i; k < i + LOT; k++)
			out[k] = (uint8_t)(int)mix(own[k], other[k], share);
	}
	for (; i < count; i++)
		out[i] = (uint8_t)(int)mix(own[i], other[i], share);
}

static void mix_labels(const struct op_pair *pair, float share, float *out)
{
	dtype_convert(pair->type->dtype, pair->own, DTYPE_F4, &out[0], 1);
	dtype_convert(pair->type->dtype, pair->other, DTYPE_F4, &out[1], 1);
	out[2] = share;
}

static void mix_reals(const float *own, const float *other, size_t count,
		      float share, float *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mix(own[i], other[i], share);
}

static void pair(const struct args *args, const struct op_pair *pair)
{
	const struct uniform uniform =
		args->arg[LAMBDA].word == OF_BATCH ? pair->batch : pair->row;
	float share = 1;

	if (pair->own != pair->other)
		share = (float)beta_draw(args->arg[ALPHA].number[0], uniform);
	if (pair->type->kind == TYPE_IMAGE)
		mix_bytes(pair->own, pair->other, pair->count, share,
			  pair->out);
	else if (pair->type->dtype == DTYPE_F4)
		mix_reals(pair->own, pair->other, pair->count, share,
			  pair->out);
	else
		mix_labels(pair, share, pair->out);
}

const struct op op_mixup = {
	.name = "mixup",
	.help = "rows of a batch are mixed with those before them",
	.kind = OP_BATCH,
	.params = params,
	.infer = infer,
	.pair = pair,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/pipeline/op/beta.h"
#include "loader/pipeline/op/mix.h"

enum { ALPHA, LAMBDA };

static const struct param params[] = {
	[ALPHA] = MIX_PARAM_ALPHA(NULL),
	[LAMBDA] = MIX_PARAM_LAMBDA,
	MIX_PARAM_GROUP,
	{ 0 },
};

/* Use loops of constant length, so that compilers vectorize them. */
enum { LOT = 64 };

static void mix_bytes(const uint8_t *own, const uint8_t *other, size_t count,
		      float share, uint8_t *out)
{
	size_t i = 0;

	for (; i + LOT <= count; i += LOT) {
		for (size_t k = i; k < i + LOT; k++)
			out[k] = (uint8_t)(int)mix_values(own[k], other[k],
							  share);
	}
	for (; i < count; i++)
		out[i] = (uint8_t)(int)mix_values(own[i], other[i], share);
}

static void pair(const struct args *args, const struct op_pair *pair)
{
	const struct uniform uniform = mix_uniform(&args->arg[LAMBDA], pair);
	float share = 1;

	if (pair->own != pair->other)
		share = (float)beta_draw(args->arg[ALPHA].number[0], uniform);
	if (pair->type->kind == TYPE_IMAGE)
		mix_bytes(pair->own, pair->other, pair->count, share,
			  pair->out);
	else
		mix_labels(pair, share);
}

const struct op op_mixup = {
	.name = "mixup",
	.help = "Blend each sample of a batch with the "
		"sample before it",
	.kind = OP_BATCH,
	.params = params,
	.infer = mix_infer,
	.batch =
		&(const struct op_batch){
			.mix = pair,
		},
};

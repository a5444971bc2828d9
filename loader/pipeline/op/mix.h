/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared parts of OP_BATCH operations: the parameters, the types, and the
 * mixture of two labels.
 */
#ifndef LOADER_PIPELINE_OP_MIX_H
#define LOADER_PIPELINE_OP_MIX_H

#include "loader/pipeline/op/op.h"

/* The infer() function of mixing operations. A label becomes three numbers:
   both labels and the weight. */
const char *mix_infer(const struct args *args, const struct type *in,
		      struct type *out);

/* Returns the random numbers to use for a choice of MIX_PARAM_LAMBDA. */
struct uniform mix_uniform(const struct arg *lambda,
			   const struct op_pair *pair);

/* Blends two values. The blend of equal values is exactly that value. */
static inline float mix_values(float own, float other, float share)
{
	return other + share * (own - other);
}

/* Mixes two labels, or two arrays of float32. */
void mix_labels(const struct op_pair *pair, float share);

#define MIX_PARAM_ALPHA(text)                                                  \
	{                                                                      \
		.name = "alpha", .kind = PARAM_REALS, .initial = text,         \
		.min_count = 1, .max_count = 1, .min = 0x1p-10, .max = 0x1p10, \
		.help = "the weight has the distribution Beta(alpha, alpha)"   \
	}
#define MIX_PARAM_LAMBDA                                                       \
	{                                                                      \
		.name = "lambda", .kind = PARAM_CHOICE, .initial = "batch",    \
		.choices = "batch|sample", .help = "scope of one weight"       \
	}
/* An image and its label need the same weight, so they share a group. */
#define MIX_PARAM_GROUP                                                        \
	{                                                                      \
		.name = "group", .kind = PARAM_NAME, .initial = "0",           \
		.help = "operations of one group draw the same random numbers" \
	}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that operations of OP_BATCH share: the parameters, the types, and the
 * mixture of two labels.
 */
#ifndef LOADER_GRAPH_MIX_H
#define LOADER_GRAPH_MIX_H

#include "loader/graph/op.h"

/* infer() of mixing operations. A whole number becomes three numbers: both
 * labels and the weight. */
const char *mix_infer(const struct args *args, const struct type *in,
		      struct type *out);

/* The random numbers to use for a choice of MIX_PARAM_LAMBDA. */
struct uniform mix_uniform(const struct arg *lambda,
			   const struct op_pair *pair);

/* Keeps equal values exactly. */
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
		.name = "lambda", .kind = PARAM_WORD, .initial = "batch",      \
		.words = "batch|sample", .help = "scope of one weight"         \
	}
/* An image and its label are mixed alike, so both have one group. */
#define MIX_PARAM_GROUP                                                        \
	{                                                                      \
		.name = "group", .kind = PARAM_NAME, .initial = "0",           \
		.help = "operations of one group draw the same random numbers" \
	}

#endif

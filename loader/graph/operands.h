/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operations of a chain are given for one sample: the stream of random
 * numbers of each, and the operands of all value operations.
 */
#ifndef LOADER_GRAPH_OPERANDS_H
#define LOADER_GRAPH_OPERANDS_H

#include "fs/util/rng.h"
#include "loader/graph/graph.h"

/* The random numbers of an operation for a row (beton-transforms(7)). */
struct rng operands_rng(const struct pipeline_row *row, uint64_t stream);
struct uniform operands_uniform(struct rng *rng);

/* Whether they differ from sample to sample. */
bool operands_vary(const struct chain *chain);

/*
 * chain->num_operands of them, as node.first_operand places them. Without a
 * row random ones are left as they are.
 */
void operands_fill(const struct chain *chain, const struct pipeline_row *row,
		   float *out);

#endif

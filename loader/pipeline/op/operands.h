/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the inputs of a chain's operations for one sample: a stream of
 * random numbers for each operation, and the operands of all value operations.
 */
#ifndef LOADER_PIPELINE_OP_OPERANDS_H
#define LOADER_PIPELINE_OP_OPERANDS_H

#include "fs/base/util/rng.h"
#include "loader/pipeline/op/chain.h"
#include "loader/util/value.h"

/* Returns the stream of random numbers of an operation for a sample
   (beton-transforms(7)). */
struct rng operands_rng(const struct pipeline_row *row, const struct node *n);
struct uniform operands_uniform(struct rng *rng);

/* Draws the geometry of an operation for an image of this size in pixels. */
void operands_draw(const struct pipeline_row *row, const struct node *n,
		   struct size in, struct draw *out);

/* Writes the maps of `count` joined nodes, for an image of this size. */
void operands_join(const struct node *nodes, size_t count,
		   const struct pipeline_row *row, struct size in,
		   struct warp_map *out);

/* Whether the operands of a chain differ from sample to sample. */
bool operands_vary(const struct chain *chain);

/*
 * Writes chain->num_operands operands to `out`, those of a node from its
 * first_operand on. If `row` is NULL, leaves random operands unchanged.
 */
void operands_fill(const struct chain *chain, const struct pipeline_row *row,
		   float *out);

#endif

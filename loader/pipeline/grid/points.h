/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs OP_POINT and OP_PIXEL operations on the values of a grid, by the
 * definitions in their rows.
 */
#ifndef LOADER_PIPELINE_GRID_POINTS_H
#define LOADER_PIPELINE_GRID_POINTS_H

#include "fs/base/util/rng.h"
#include "loader/pipeline/grid/grid.h"

/*
 * Runs an OP_POINT or OP_PIXEL operation on input of the type `in`. `from` and
 * `to` have the same shape, and may be the same grid. Every channel draws its
 * random numbers from `start`, the first state of a stream. Returns -ENOMEM.
 */
int points_run(const struct op *op, const struct args *args,
	       const struct type *in, const struct rng *start,
	       const struct grid *from, const struct grid *to);

#endif

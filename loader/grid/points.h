/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on the values of a grid: those that map a number to another, and
 * those that map the three of a pixel. Their definitions are the rows' own.
 */
#ifndef LOADER_GRID_POINTS_H
#define LOADER_GRID_POINTS_H

#include "fs/util/rng.h"
#include "loader/grid/grid.h"

/*
 * Runs an OP_POINT or OP_PIXEL whose input has the type `in`. `from` and `to`
 * have the same shape and may be one. Every channel draws the numbers of
 * `start`, a stream's first state. -ENOMEM
 */
int points_run(const struct op *op, const struct args *args,
	       const struct type *in, const struct rng *start,
	       const struct grid *from, const struct grid *to);

#endif

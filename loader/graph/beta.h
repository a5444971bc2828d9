/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of the symmetric beta distribution, with the same bits on
   every machine. */
#ifndef LOADER_GRAPH_BETA_H
#define LOADER_GRAPH_BETA_H

#include "loader/graph/crop.h"

/*
 * Draws a number of Beta(alpha, alpha), alpha > 0, as beton-operations(7)
 * defines it. Takes a few pairs of numbers from `uniform`.
 */
double beta_draw(double alpha, struct uniform uniform);

/*
 * Draws `count` weights whose sum is 1, from Dirichlet(alpha, ..., alpha). Uses
 * several random numbers for each.
 */
void beta_shares(double alpha, unsigned count, struct uniform uniform,
		 double *out);

#endif

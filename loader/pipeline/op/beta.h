/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of the symmetric beta and Dirichlet distributions, with the
   same bits on every machine. */
#ifndef LOADER_PIPELINE_OP_BETA_H
#define LOADER_PIPELINE_OP_BETA_H

#include "loader/pipeline/op/crop.h"

/*
 * Draws a number from Beta(alpha, alpha), alpha > 0, by the algorithm of
 * beton-operations(7). Takes a few pairs of numbers from `uniform`.
 */
double beta_draw(double alpha, struct uniform uniform);

/*
 * Draws `count` weights whose sum is 1, from Dirichlet(alpha, ..., alpha). Uses
 * several random numbers for each weight.
 */
void beta_shares(double alpha, unsigned count, struct uniform uniform,
		 double *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the symmetric beta distribution, to the bit everywhere. */
#ifndef LOADER_GRAPH_BETA_H
#define LOADER_GRAPH_BETA_H

#include "loader/graph/crop.h"

/*
 * One of Beta(alpha, alpha), alpha > 0, as beton-transforms(7) says; some pairs
 * of uniform numbers are drawn for it.
 */
double beta_draw(double alpha, struct uniform uniform);

#endif

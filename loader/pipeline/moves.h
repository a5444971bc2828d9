/* SPDX-License-Identifier: Apache-2.0 */
/* Where a chain moves the pixels of a sample's image, by the numbers that it
   draws for the image itself. */
#ifndef LOADER_PIPELINE_MOVES_H
#define LOADER_PIPELINE_MOVES_H

#include "loader/graph/graph.h"

/*
 * Finds the moves of an image of this size, which is not empty. `out` has room
 * for the chain's nodes. Returns their number.
 */
size_t moves_find(const struct chain *chain, const struct pipeline_row *row,
		  struct size size, struct move *out);

#endif

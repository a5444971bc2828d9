/* SPDX-License-Identifier: Apache-2.0 */
/* Where a chain moves the pixels of a sample's image, by the numbers that it
   draws for the image itself. */
#ifndef LOADER_PIPELINE_MOVES_H
#define LOADER_PIPELINE_MOVES_H

#include "loader/graph/graph.h"

/* The most moves that there can be. */
size_t moves_most(const struct chain *chain);

/*
 * Finds the moves of an image of this size, which is not empty. `out` has room
 * for moves_most(). Returns their number.
 */
size_t moves_find(const struct chain *chain, const struct pipeline_row *row,
		  struct size size, struct move *out);

#endif

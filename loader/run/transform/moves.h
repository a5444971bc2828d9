/* SPDX-License-Identifier: Apache-2.0 */
/* Computes where a chain moves the pixels of a sample's image, with the same
   random numbers as for the image itself. */
#ifndef LOADER_RUN_TRANSFORM_MOVES_H
#define LOADER_RUN_TRANSFORM_MOVES_H

#include "loader/pipeline/graph/graph.h"

/* Returns the maximum number of moves. */
size_t moves_most(const struct chain *chain);

/*
 * Writes the moves of an image of this size in pixels, which is not empty, to
 * `out` with room for moves_most() of them. Returns their number.
 */
size_t moves_find(const struct chain *chain, const struct pipeline_row *row,
		  struct size size, struct move *out);

#endif

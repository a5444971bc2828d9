/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warps a grid. The results are defined to the bit (beton-grids(7)):
 *
 *   NEAREST    The pixel that the place lies in. Values do not change.
 *   BILINEAR   uint8: the bits that an 8-bit RGB image gets. Others: the same
 *              weights in float32, across first, the result rounded once.
 *
 * Masks always use NEAREST. Positions outside the input give `fill`.
 */
#ifndef LOADER_PIPELINE_GRID_WARP_H
#define LOADER_PIPELINE_GRID_WARP_H

#include "loader/pipeline/grid/grid.h"

/* Interpolation and fill of a warp, from an operation's arguments. */
struct grid_warp {
	enum warp_how how;
	const struct arg *fill; /* one number, or one for each channel */
	const struct arg *label;
};

/* Warps `in` to `out`, which has the same channels, frames and dtype, and other
   memory, by one map or by joined maps (warp_join()). Sides of `in` are at most
   OP_SIZE_MAX. */
void grid_warp_maps(const struct grid_warp *w, const struct warp_map *maps,
		    size_t count, const struct grid *in,
		    const struct grid *out);

/* Warps `in` to `out` of the same size by a map of warp_displaced(). */
void grid_warp_displaced(const struct grid_warp *w, const float *dx,
			 const float *dy, const struct grid *in,
			 const struct grid *out);

#endif

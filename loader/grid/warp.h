/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warping a grid, defined to the bit (beton-grids(7)):
 *
 *   NEAREST    The pixel that the place lies in. Values do not change.
 *   BILINEAR   uint8: the bits that an 8-bit RGB image gets. Others: the same
 *              weights in float32, across first, the result rounded once.
 *
 * Masks are always warped by NEAREST. A place outside gives `fill`.
 */
#ifndef LOADER_GRID_WARP_H
#define LOADER_GRID_WARP_H

#include "loader/grid/grid.h"

/* How a warp interpolates and fills, from an operation's arguments. */
struct grid_warp {
	enum warp_how how;
	const struct arg *fill; /* one number, or one for each channel */
	const struct arg *label;
};

/* Warps `in` to `out`, which has the same channels, frames and numbers, and
   other memory, by one map or by joined ones (warp_join()). Sides of `in` are
   at most OP_SIZE_MAX. */
void grid_warp_maps(const struct grid_warp *w, const struct warp_map *maps,
		    size_t count, const struct grid *in,
		    const struct grid *out);

/* The same, of the same size, by a map of warp_displaced(). */
void grid_warp_displaced(const struct grid_warp *w, const float *dx,
			 const float *dy, const struct grid *in,
			 const struct grid *out);

#endif

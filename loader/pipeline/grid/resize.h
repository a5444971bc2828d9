/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizes a grid. The results are defined to the bit (beton-grids(7)):
 *
 *   uint8     Each channel gets the bits that an 8-bit RGB image gets
 *             (loader/image/resize/resample.h).
 *   others    The same weights in float32, values converted to float32 before
 *             and back after both passes: across first, sums from the left,
 *             each product rounded. Whole numbers are limited to their range.
 *   NEAREST   The pixels that an image gets. Values do not change.
 *
 * A resizer belongs to one thread, and reuses its memory.
 */
#ifndef LOADER_PIPELINE_GRID_RESIZE_H
#define LOADER_PIPELINE_GRID_RESIZE_H

#include "loader/pipeline/grid/grid.h"

struct grid_resizer;

int grid_resizer_open(struct grid_resizer **out);
/* Takes NULL. */
void grid_resizer_close(struct grid_resizer *r);

/*
 * Resizes `in`, optionally mirrored, to `out`, which has the same channels,
 * frames and dtype, and other memory. Returns -ENOMEM.
 */
int grid_resize(struct grid_resizer *r, enum interpolation how, bool mirror,
		const struct grid *in, const struct grid *out);

#endif

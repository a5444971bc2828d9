/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a value to the first grid of a chain. The value is an array, an
 * image (for classes or gray), or bytes with one PNG or JPEG or a list of them.
 * The size of the grid is available before decoding, so that the source decodes
 * only the required part.
 */
#ifndef LOADER_RUN_TRANSFORM_GRID_SOURCE_H
#define LOADER_RUN_TRANSFORM_GRID_SOURCE_H

#include "loader/pipeline/graph/graph.h"
#include "loader/pipeline/grid/grid.h"
#include "loader/util/value.h"

struct grid_source;

int grid_source_open(struct grid_source **out);
/* Takes NULL. */
void grid_source_close(struct grid_source *s);

/*
 * Starts a value of type `from`, which must outlive its use, to make a grid of
 * type `type`. Sets the shape of `out`, but no values. Returns -EINVAL or
 * -EBADMSG.
 */
int grid_source_start(struct grid_source *s, const struct type *from,
		      const struct type *type,
		      const struct pipeline_value *value, struct grid *out);

/* Chooses `count` frames from `first` on. Call it before a part is made.
   Repeats the last frame if there are too few. */
void grid_source_window(struct grid_source *s, uint32_t first, uint32_t stride,
			uint32_t count, struct grid *out);

/*
 * Sets `out` to a part of the grid, in memory of the source or of the value,
 * which you must not change. Valid until the next start. Returns -EINVAL,
 * -EBADMSG or -ENOMEM.
 */
int grid_source_part(struct grid_source *s, const struct rect *part,
		     struct grid *out);

/* Returns the reason of the last failure. Valid until the next call. */
const char *grid_source_message(const struct grid_source *s);

#endif

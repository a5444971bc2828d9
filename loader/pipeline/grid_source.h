/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first grid of a chain, made of a value: an array as it is, classes or
 * gray of an image, PNGs and JPEGs in bytes, one or a list of them. Its size is
 * known before a pixel is decoded, so that only a part has to be.
 */
#ifndef LOADER_PIPELINE_GRID_SOURCE_H
#define LOADER_PIPELINE_GRID_SOURCE_H

#include "loader/graph/graph.h"
#include "loader/grid/grid.h"
#include "loader/util/value.h"

struct grid_source;

int grid_source_open(struct grid_source **out);
/* Takes NULL. */
void grid_source_close(struct grid_source *s);

/*
 * Starts on a value, which must live until the next one: `type` is that of the
 * grid to be made of it, `from` that of the value. Sets the shape of `out`,
 * without values. -EINVAL, -EBADMSG
 */
int grid_source_start(struct grid_source *s, const struct type *from,
		      const struct type *type,
		      const struct pipeline_value *value, struct grid *out);

/* Chooses `count` frames from `first` on, before a part is made. Beyond the
   last frame comes the last. */
void grid_source_window(struct grid_source *s, uint32_t first, uint32_t stride,
			uint32_t count, struct grid *out);

/*
 * Makes the part of the grid, in the source's memory or the value's, valid
 * until the next start. Never written to. -EINVAL, -EBADMSG, -ENOMEM
 */
int grid_source_part(struct grid_source *s, const struct rect *part,
		     struct grid *out);

/* The reason why the last call failed; valid until the next call. */
const char *grid_source_message(const struct grid_source *s);

#endif

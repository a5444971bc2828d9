/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two families of image-like values: 8-bit RGB images, and grids of any
 * numbers. Decides which operations a grid takes, which ones masks skip, and
 * when an array becomes a grid.
 */
#ifndef LOADER_PIPELINE_GRAPH_FAMILY_H
#define LOADER_PIPELINE_GRAPH_FAMILY_H

#include "loader/pipeline/op/op.h"

/* Returns the value that means 1 in a field's numbers: 255, 65535 or 1. */
float family_unit(enum dtype dtype);

/* Returns the grid type of an array with rows and columns. */
struct type family_grid_of(const struct type *array);

/* Converts the type of an array to a grid, if the array has rows and columns
   and the operation works on images. */
void family_enter(const struct op *op, struct type *type);

/* Returns the reason why an operation does not work on its input type, or NULL.
   `custom`: the operation is user-defined. */
const char *family_refuse(const struct op *op, const struct args *args,
			  bool custom, const struct type *type);

/* Whether a statement of several fields skips an operation for a field of this
   type, because it changes colors or chooses how to decode JPEGs. */
bool family_skips(const struct op *op, const struct type *type);

/* Whether a field is a mask in a statement of several fields, if no other
   statement names it. */
bool family_is_mask(const struct type *type);

#endif

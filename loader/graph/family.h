/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of values that look like images: 8-bit RGB, and grids of any
 * numbers. Which operations a grid takes, which of them masks do without, and
 * what an array becomes once one of them follows.
 */
#ifndef LOADER_GRAPH_FAMILY_H
#define LOADER_GRAPH_FAMILY_H

#include "loader/graph/op.h"

/* The value of a field's numbers that stands for 1: 255, 65535 or 1. */
float family_unit(enum dtype dtype);

/* The grid that an array of rows and columns is. */
struct type family_grid_of(const struct type *array);

/* Makes the type of an array that of a grid, if it has rows and columns and the
   operation is one for images. */
void family_enter(const struct op *op, struct type *type);

/* Returns why an operation does not work on its input type, or NULL. `own`: it
 * is a custom operation. */
const char *family_refuse(const struct op *op, const struct args *args,
			  bool own, const struct type *type);

/* Whether a statement of several fields leaves out an operation for a field of
   this type, because it changes colors, or how JPEGs are decoded. */
bool family_skips(const struct op *op, const struct type *type);

/* Whether a field without operations of its own is a mask in a statement of
   several fields. */
bool family_is_mask(const struct type *type);

#endif

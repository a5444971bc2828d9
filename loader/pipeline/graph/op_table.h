/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations, by number and by name. It stands above its rows: no
 * operation calls it.
 */
#ifndef LOADER_PIPELINE_GRAPH_OP_TABLE_H
#define LOADER_PIPELINE_GRAPH_OP_TABLE_H

#include "loader/pipeline/op/op.h"

/* Returns row `i`, or NULL past the last row. */
const struct op *op_table_row(size_t i);
/* Finds a row by its name, its British spelling or an alias (synonym.h).
   Returns NULL if there is none. */
const struct op *op_table_find(const char *name);

#endif

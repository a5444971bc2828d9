/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a graph out of the statements of a pipeline: one chain of operations
 * per output, with fields and operations resolved, arguments bound, and types
 * inferred and checked. A graph that is built has no errors left; it can be
 * run, by tables or by generated code.
 */
#ifndef LOADER_GRAPH_GRAPH_H
#define LOADER_GRAPH_GRAPH_H

#include "loader/graph/chain.h"
#include "loader/util/value.h"

struct diagnostic;
struct epochs;
struct parse;

/* Builds the graph for epochs->now (schedule.h). -EINVAL, with a message in
   `c`. */
int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct diagnostic *c, struct graph *out);
void graph_fini(struct graph *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a graph from the statements of a pipeline: one chain of operations per
 * output. Resolves fields and operations, binds arguments, and infers and
 * checks types. A complete graph has no errors: tables or generated code can
 * run it.
 */
#ifndef LOADER_PIPELINE_GRAPH_GRAPH_H
#define LOADER_PIPELINE_GRAPH_GRAPH_H

#include "loader/pipeline/op/chain.h"
#include "loader/util/value.h"

struct diagnostic;
struct epochs;
struct parse;

/* Builds the graph for epochs->now (schedule.h). Returns -EINVAL, with a
   message in `c`. */
int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct diagnostic *c, struct graph *out);
void graph_fini(struct graph *g);

#endif

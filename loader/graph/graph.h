/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a graph out of the statements of a pipeline: one chain of operations
 * per output, with fields and operations resolved, arguments bound, and types
 * inferred and checked. A graph that is built has no errors left; it can be
 * run, by tables or by generated code.
 */
#ifndef LOADER_GRAPH_GRAPH_H
#define LOADER_GRAPH_GRAPH_H

#include "loader/graph/op.h"
#include "loader/util/value.h"

struct diagnostic;
struct epochs;
struct user_op;
struct parse;

struct node {
	const struct op *op;
	struct args args;    /* texts are NULL */
	struct user_op *own; /* a user's function; NULL: a row of loader/ops */
	uint64_t stream;     /* if random, the key of OP:GROUP; else 0 */
	struct type type;    /* of the result */
	/* Value operations: the index of the first operand among those of the
	   part; for a point those of R, G and B follow one another. */
	size_t first_operand;
};

struct chain {
	char *name; /* of the output; NULL if dropped */
	uint32_t field;
	bool dropped; /* there is no output */
	struct type source;
	struct node *nodes;
	size_t num_nodes;
	size_t num_operands; /* of the last part */
};

struct graph {
	struct chain *chains; /* of statements, then of fields without one */
	size_t num_chains;
};

/* Builds the graph for epochs->now (schedule.h). -EINVAL, with a message in
   `c`. */
int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct diagnostic *c, struct graph *out);
void graph_fini(struct graph *g);

/* The type of a chain's result. */
const struct type *chain_type(const struct chain *chain);

/*
 * The index of the OP_DEVICE node, after which a GPU has the values; num_nodes
 * if there is none.
 */
size_t chain_cut(const struct chain *chain);

/*
 * Splits a chain before node `at`. Both halves borrow the nodes; the places of
 * operands do not change.
 */
struct chain chain_head(const struct chain *chain, size_t at);
struct chain chain_rest(const struct chain *chain, size_t at);

/*
 * The nodes [from, to) as a chain with its own operands. Both are bounds of
 * parts.
 */
struct chain chain_part(const struct chain *chain, size_t from, size_t to);

/* Whether an operation needs more than one pixel, so that a part ends before
   it. */
bool node_is_cut(const struct node *n);

/* Whether an operation maps values to values: OP_POINT, OP_PIXEL. */
bool node_is_value(const struct node *n);

#endif

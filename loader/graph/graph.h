/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements -> typed chains of operations, one per output: fields and
 * operations resolved, arguments bound, types inferred, everything checked.
 * What is left to do with a graph is to run it, by tables or by generated code.
 */
#ifndef LOADER_GRAPH_GRAPH_H
#define LOADER_GRAPH_GRAPH_H

#include "loader/graph/op.h"
#include "loader/util/value.h"

struct epochs;
struct own;
struct parse;

struct node {
	const struct op *op;
	struct args args; /* without texts */
	struct own *own;  /* NULL, or the function in a file that it is */
	uint64_t stream;  /* random: the key of OP:GROUP, else 0 */
	struct type type; /* after the operation */
	/* Value operations: the place of theirs among the operands of the
	   part, those of R, G and B one after the other. */
	size_t first_operand;
};

struct chain {
	char *name; /* of the output */
	uint32_t field;
	bool dropped; /* no output, it only names its field */
	struct type source;
	struct node *nodes;
	size_t num_nodes;
	size_t num_operands; /* of its last part */
};

struct graph {
	struct chain *chains; /* statements in order, then unnamed fields */
	size_t num_chains;
};

/* What is meant in epochs->now (schedule.h). -EINVAL: told through `c`. */
int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct complaint *c, struct graph *out);
void graph_fini(struct graph *g);

/* The type at the end of a chain. */
const struct type *chain_type(const struct chain *chain);

/*
 * The place of the node after which a GPU has the values; without one
 * num_nodes.
 */
size_t chain_cut(const struct chain *chain);

/*
 * A chain in two, which borrow all they have: the nodes before `at`, and from
 * there on. Operands stay where they were.
 */
struct chain chain_head(const struct chain *chain, size_t at);
struct chain chain_rest(const struct chain *chain, size_t at);

/*
 * The nodes from `from` up to `to`, where parts begin and end.
 */
struct chain chain_part(const struct chain *chain, size_t from, size_t to);

/* Whether it needs more than a pixel, so that a part ends before it. */
bool node_is_cut(const struct node *n);

/* Whether an operation makes other values of values: OP_POINT, OP_PIXEL. */
bool node_is_value(const struct node *n);

#endif

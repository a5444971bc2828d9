/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of operations, from a field to an output, and parts of it. Its nodes
 * are resolved: arguments are bound, and types are inferred.
 */
#ifndef LOADER_PIPELINE_OP_CHAIN_H
#define LOADER_PIPELINE_OP_CHAIN_H

#include "loader/pipeline/op/op.h"

struct user_op;
struct chain;

struct node {
	const struct op *op;
	struct args args; /* strings are NULL */
	struct user_op *
		custom; /* a custom operation; NULL: a row of loader/pipeline/ops */
	uint64_t stream;  /* if random, the key of OP:GROUP; else 0 */
	struct type type; /* of the result */
	size_t at;	  /* offset into the pipeline string */
	bool is_viewed;	  /* draws separate numbers for each view */
	/* OP_BATCH: the size of the image that shares the random numbers, in
	   this chain or another one. 0,0: no image. */
	struct size image;
	char *of_name; /* with op_refers_to(): the output that it names */
	size_t of_at;  /* offset into the pipeline string */
	const struct chain *of;
	/* Value operations: the index of the first operand among those of the
	   part. The operands of an OP_POINT are those of R, then G, then B. */
	size_t first_operand;
	/* The operations in its parentheses, one chain for each list; each
	 * keeps the size and the type of its input. */
	struct chain *branches;
	size_t num_branches;
};

struct chain {
	char *name; /* of the output; NULL if dropped */
	uint32_t field;
	size_t at;    /* of its statement or its name */
	bool dropped; /* there is no output */
	struct type source;
	struct node *nodes;
	size_t num_nodes;
	size_t num_operands; /* operands of the last part */
};

struct graph {
	struct chain *chains; /* chains of statements, then those of fields
				 without one */
	size_t num_chains;
};

/* Returns the node of the chain that refers to another output, or NULL. */
const struct node *chain_of(const struct chain *chain);

/* The type of a chain's result. */
const struct type *chain_type(const struct chain *chain);

/*
 * Returns the index of the OP_DEVICE node, or num_nodes if there is none. After
 * this node the values are on a GPU.
 */
size_t chain_cut(const struct chain *chain);

/*
 * Splits a chain before node `at`. Both halves refer to the nodes of `chain`,
 * which must outlive them. Indices of operands do not change.
 */
struct chain chain_head(const struct chain *chain, size_t at);
struct chain chain_rest(const struct chain *chain, size_t at);

/*
 * Returns the nodes [from, to) as a chain with its own operands. `from` and
 * `to` must be bounds of parts.
 */
struct chain chain_part(const struct chain *chain, size_t from, size_t to);

/* Whether an operation needs more than one pixel. A part ends before it. */
bool node_is_cut(const struct node *n);

/* Whether an operation maps values to values: OP_POINT, OP_PIXEL. */
bool node_is_value(const struct node *n);

/* Returns how many of the first nodes are one resampling, from 1 to `count`. */
size_t node_joined(const struct node *nodes, size_t count);

/* Returns the number of operands of an operation, for all values of a pixel. */
size_t node_num_operands(const struct node *n);

/* Sets the indices of the operands of a node that becomes the last one of the
   chain. */
void chain_place(struct chain *chain, struct node *n);

/* Finds the operation at an offset of the pipeline string, also in parentheses,
   or returns NULL. */
const struct node *chain_find(const struct chain *chain, size_t at);

/* Returns the node that mixes samples, or NULL. */
struct node *chain_mixture(const struct chain *chain);

void node_close(struct node *n);
void chain_close(struct chain *chain);

#endif

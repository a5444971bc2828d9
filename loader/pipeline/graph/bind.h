/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves one stage of a pipeline string: its field, its operation, its
 * arguments, the key of its random numbers, and the operations in its
 * parentheses.
 */
#ifndef LOADER_PIPELINE_GRAPH_BIND_H
#define LOADER_PIPELINE_GRAPH_BIND_H

#include "loader/pipeline/op/chain.h"
#include "loader/util/value.h"

struct diagnostic;
struct epochs;
struct parse;
struct parse_stage;

enum { BIND_NOT_FOUND = -1 };

/* An operation of the pipeline string. */
struct mention {
	const struct op *op;
	const char *function; /* a custom operation; else NULL */
};

/* The graph under construction, and its sources. */
struct builder {
	const struct parse *parse;
	const struct pipeline_field *fields;
	size_t num_fields;
	struct epochs *epochs;
	const struct diagnostic *diagnostic;
	struct graph *out;
	struct mention
		*mentions; /* chains so far, in the order of the outputs */
	size_t num_mentions;
	size_t first;	 /* chain of the statement */
	bool is_several; /* the statement has several fields */
};

/* Returns the index of a field, or BIND_NOT_FOUND. */
int bind_field(const struct builder *b, const char *word);
/* Reports a missing field. Returns -EINVAL. */
int bind_unknown_field(const struct builder *b,
		       const struct parse_stage *stage);
/* Sets chain->field, and *skip to the number of stages that name the field, 0
   or 1. */
int bind_take_field(const struct builder *b, const struct parse_stage *stage,
		    struct chain *chain, size_t *skip);
struct type bind_source(const struct pipeline_field *f);

/* Whether a field of this type skips an operation that its statement of several
   fields applies to the others. */
bool bind_is_skipped(const struct parse_stage *stage, const struct type *type);

/* Returns the node of the same operation in another chain of the statement, or
   NULL. */
const struct node *bind_twin(const struct builder *b, const struct node *n);
/* Resolves the operation of a stage and binds its arguments. */
int bind_stage(struct builder *b, const struct parse_stage *stage,
	       struct node *n);
/* If `wrong` is not NULL, reports it as the error of a node. */
int bind_refuse(const struct builder *b, const struct parse_stage *stage,
		const struct node *n, const char *wrong);
/* Resolves the lists of operations of a stage. Their input has the type
   `in`. */
int bind_branches(struct builder *b, const struct parse_stage *stage,
		  struct node *n, const struct type *in);
void bind_forget_texts(struct args *args);

#endif

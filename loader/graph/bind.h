/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves one stage of a text: its field, its operation, its arguments, the
 * key of its random numbers, and the operations in its parentheses.
 */
#ifndef LOADER_GRAPH_BIND_H
#define LOADER_GRAPH_BIND_H

#include "loader/graph/chain.h"
#include "loader/util/value.h"

struct diagnostic;
struct epochs;
struct parse;
struct parse_stage;

enum { BIND_NOT_FOUND = -1 };

/* An operation of the pipeline string. */
struct mention {
	const struct op *op;
	const char *function; /* of a file; else NULL */
};

/* The graph under construction, and its sources. */
struct builder {
	const struct parse *parse;
	const struct pipeline_field *fields;
	size_t num_fields;
	struct epochs *epochs;
	const struct diagnostic *diagnostic;
	struct graph *out;
	struct mention *mentions; /* so far, in their order */
	size_t num_mentions;
	size_t first;	 /* chain of the statement */
	bool is_several; /* it is of several fields */
};

/* The index of a field, or BIND_NOT_FOUND. */
int bind_field(const struct builder *b, const char *word);
/* Complains of a field that there is not. -EINVAL */
int bind_unknown_field(const struct builder *b,
		       const struct parse_stage *stage);
/* Sets chain->field. *skip: the number of stages that name it, 0 or 1. */
int bind_take_field(const struct builder *b, const struct parse_stage *stage,
		    struct chain *chain, size_t *skip);
struct type bind_source(const struct pipeline_field *f);

/* Whether a field of several, of this type so far, does without an operation of
   all of them. */
bool bind_is_skipped(const struct parse_stage *stage, const struct type *type);

/* The node of the same operation in another chain of the statement, or NULL. */
const struct node *bind_twin(const struct builder *b, const struct node *n);
/* Resolves the operation of a stage and binds its arguments. */
int bind_stage(struct builder *b, const struct parse_stage *stage,
	       struct node *n);
/* Complains of a node, if `wrong` is not NULL. */
int bind_refuse(const struct builder *b, const struct parse_stage *stage,
		const struct node *n, const char *wrong);
/* Resolves the lists of operations of a stage, which get `in`. */
int bind_branches(struct builder *b, const struct parse_stage *stage,
		  struct node *n, const struct type *in);
void bind_forget_texts(struct args *args);

#endif

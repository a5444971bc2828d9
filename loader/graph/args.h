/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of an operation: values in a pipeline string become the
 * numbers and choices that the operation's parameters declare
 * (loader/graph/op.h). Messages quote the string and name the column. Pure
 * functions.
 */
#ifndef LOADER_GRAPH_ARGS_H
#define LOADER_GRAPH_ARGS_H

#include "loader/graph/op.h"

struct diagnostic;
struct epochs;
struct parse;
struct parse_arg;
struct parse_stage;

/*
 * Binds the arguments of a stage to the parameters of `op`. Resolves schedules
 * to their numbers in epochs->now, so no other function handles schedules.
 * -EINVAL, with a message.
 */
int args_bind(const struct op *op, const struct parse *parse,
	      const struct parse_stage *stage, struct epochs *epochs,
	      const struct diagnostic *c, struct args *out);

/* The index of the parameter that an argument is for, by its name or position
   among all; -1: there is none. */
int args_param(const struct op *op, const struct parse_arg *arg,
	       size_t position);

/* Whether two sets of arguments are equal, except for their texts. */
bool args_equal(const struct args *a, const struct args *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the arguments of an operation in a pipeline string to the numbers
 * and choices that its parameters declare (loader/pipeline/op/op.h).
 * Messages quote the string and name the column. Pure functions.
 */
#ifndef LOADER_PIPELINE_GRAPH_ARGS_H
#define LOADER_PIPELINE_GRAPH_ARGS_H

#include "loader/pipeline/op/op.h"

struct diagnostic;
struct epochs;
struct parse;
struct parse_arg;
struct parse_stage;

/*
 * Binds the arguments of a stage to the parameters of `op`. Resolves schedules
 * to their numbers in epochs->now, so no other function handles schedules.
 * Returns -EINVAL, with a message in `c`.
 */
int args_bind(const struct op *op, const struct parse *parse,
	      const struct parse_stage *stage, struct epochs *epochs,
	      const struct diagnostic *c, struct args *out);

/* Returns the index of an argument's parameter, by its name or its position, or
   -1. */
int args_param(const struct op *op, const struct parse_arg *arg,
	       size_t position);

/* Whether two sets of arguments are equal, except for their strings. */
bool args_equal(const struct args *a, const struct args *b);

#endif

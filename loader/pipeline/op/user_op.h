/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom operations: C functions in a file, such as `"my_op.c".solarize2(0.3)`
 * in a pipeline. A custom operation works like an OP_PIXEL row, but only
 * compiled code can run it. beton-jit(7) describes its parameters.
 */
#ifndef LOADER_PIPELINE_OP_USER_OP_H
#define LOADER_PIPELINE_OP_USER_OP_H

#include "loader/pipeline/op/op.h"

struct diagnostic;
struct epochs;
struct parse;
struct parse_stage;

/* Operands of a call: the arguments, then the sample's random numbers. */
enum { USER_OP_ARGS_MAX = 8, USER_OP_RANDOM = 4, USER_OP_FILE_MAX = 1 << 20 };

struct user_op {
	char *file;
	char *function;
	size_t num_args;
	float args[USER_OP_ARGS_MAX];
	size_t at;  /* offset of its name in the pipeline string */
	char *text; /* source text of the file, set by user_op_load() */
};

/* The row of all custom operations. */
extern const struct op user_op_op;

/* Binds the arguments like args_bind(), without reading the file. Returns
   -EINVAL, with a message. */
int user_op_bind(const struct parse *parse, const struct parse_stage *stage,
		 struct epochs *epochs, const struct diagnostic *c,
		 struct user_op **out);
void user_op_close(struct user_op *custom);

size_t user_op_num_operands(const struct user_op *custom);
void user_op_operands(const struct user_op *custom, struct uniform uniform,
		      float *out);

/* Reads the file, relative to the working directory. Returns -EINVAL, with a
   message in `c`. */
int user_op_load(struct user_op *custom, const struct diagnostic *c);

#endif

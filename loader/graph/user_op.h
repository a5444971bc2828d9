/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that a user writes: a C function in a file, which a pipeline names
 * as in `"my_op.c".solarize2(0.3)`. It takes part like an OP_PIXEL row, but
 * only compiled code can run it. beton-transforms(7) describes its parameters.
 */
#ifndef LOADER_GRAPH_USER_OP_H
#define LOADER_GRAPH_USER_OP_H

#include "loader/graph/op.h"

struct complaint;
struct epochs;
struct parse;
struct parse_stage;

/* The operands are the arguments, then the sample's random numbers. */
enum { OWN_ARGS_MAX = 8, OWN_RANDOM = 4, OWN_FILE_MAX = 1 << 20 };

struct own {
	char *file;
	char *function;
	size_t num_args;
	float args[OWN_ARGS_MAX];
	size_t at;  /* offset of its name in the pipeline's text */
	char *text; /* of the file, set by own_load() */
};

/* The row that all of them share. */
extern const struct op own_op;

/* Like args_bind(), without reading the file. -EINVAL, with a message. */
int own_bind(const struct parse *parse, const struct parse_stage *stage,
	     struct epochs *epochs, const struct complaint *c,
	     struct own **out);
void own_close(struct own *own);

size_t own_num_operands(const struct own *own);
void own_operands(const struct own *own, struct uniform uniform, float *out);

/* Reads the file, relative to the working directory. -EINVAL, with a message in
   `c`. */
int own_load(struct own *own, const struct complaint *c);

#endif

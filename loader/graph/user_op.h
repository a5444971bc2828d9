/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a user's own: a C function in a file that the text of a
 * pipeline names, `"my_op.c".solarize2(0.3)`. It takes part like OP_PIXEL
 * rows, but has no definition except the file: it runs compiled or not at all.
 * What it sees is in beton-transforms(7).
 */
#ifndef LOADER_GRAPH_USER_OP_H
#define LOADER_GRAPH_USER_OP_H

#include "loader/graph/op.h"

struct complaint;
struct epochs;
struct parse;
struct parse_stage;

/* After the arguments stand the random numbers of the sample. */
enum { OWN_ARGS_MAX = 8, OWN_RANDOM = 4, OWN_FILE_MAX = 1 << 20 };

struct own {
	char *file;
	char *function;
	size_t num_args;
	float args[OWN_ARGS_MAX];
	size_t at;  /* where the pipeline's text names it */
	char *text; /* of the file, after own_load() */
};

/* The row of all of them. */
extern const struct op own_op;

/* Reads no file; as op_bind() otherwise. -EINVAL: told. */
int own_bind(const struct parse *parse, const struct parse_stage *stage,
	     struct epochs *epochs, const struct complaint *c,
	     struct own **out);
void own_close(struct own *own);

size_t own_num_operands(const struct own *own);
void own_operands(const struct own *own, struct uniform uniform, float *out);

/* Reads the file, relative to the working directory. -EINVAL: told. */
int own_load(struct own *own, const struct complaint *c);

#endif

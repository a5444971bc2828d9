/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives pipelines that differ from a given one by one operation. Works on the
 * text alone: the result may be a pipeline that the loader refuses. Pure
 * functions.
 */
#ifndef LOADER_GRAPH_EDIT_H
#define LOADER_GRAPH_EDIT_H

#include <stdbool.h>
#include <stddef.h>

/* Counts the operations of all statements. */
size_t edit_num_ops(const char *text);

/*
 * Copies operation `i` as it is written, like "flip(p=0.3)", and its name; the
 * caller frees both. -ENOENT: there are fewer. -EINVAL: a syntax error.
 */
int edit_op(const char *text, size_t i, char **written, char **name);

/* Copies the pipeline string without operation `i`. -ENOENT: its statement has
 * no other stage. */
int edit_without(const char *text, size_t i, char **out);

/*
 * Copies the pipeline string with an operation added as the first one of each
 * statement that resizes. A decode() stays before it if `after_decode`,
 * otherwise it is replaced. -ENOENT: no statement resizes.
 */
int edit_with_first(const char *text, const char *operation, bool after_decode,
		    char **out);

/* Copies the pipeline string with an operation added before the first one
 * called `name`. -ENOENT: there is none. */
int edit_with_before(const char *text, const char *operation, const char *name,
		     char **out);

/* Whether the pipeline string has an operation of that name. */
bool edit_has(const char *text, const char *name);

#endif

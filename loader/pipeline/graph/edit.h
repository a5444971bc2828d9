/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives pipeline strings that differ from a given one by one operation. Only
 * parses the string, so the loader can refuse the result. Pure functions.
 */
#ifndef LOADER_PIPELINE_GRAPH_EDIT_H
#define LOADER_PIPELINE_GRAPH_EDIT_H

#include <stdbool.h>
#include <stddef.h>

/* Counts the operations of all statements. */
size_t edit_num_ops(const char *text);

/*
 * Copies operation `i` as written, such as "flip(p=0.3)", and its name. The
 * caller frees both. Returns -ENOENT if there are fewer operations, or -EINVAL
 * for a syntax error.
 */
int edit_op(const char *text, size_t i, char **written, char **name);

/* Copies the pipeline string without operation `i`. Returns -ENOENT if its
   statement has no other stage. */
int edit_without(const char *text, size_t i, char **out);

/*
 * Copies the pipeline string and adds an operation as the first one of each
 * statement that resizes. If `after_decode` is true, an existing decode() stays
 * before it; otherwise the operation replaces the decode(). Returns -ENOENT if
 * no statement resizes.
 */
int edit_with_first(const char *text, const char *operation, bool after_decode,
		    char **out);

/* Copies the pipeline string and adds an operation before the first one named
   `name`. Returns -ENOENT if there is none. */
int edit_with_before(const char *text, const char *operation, const char *name,
		     char **out);

/* Whether the pipeline string has an operation of that name. */
bool edit_has(const char *text, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines that differ from a given one by one operation. Works on the text:
 * whether the result is a pipeline is for the loader to say. Pure functions.
 */
#ifndef LOADER_GRAPH_EDIT_H
#define LOADER_GRAPH_EDIT_H

#include <stdbool.h>
#include <stddef.h>

/* Operations of a text, counted through all statements. */
size_t edit_num_ops(const char *text);

/*
 * The operation as it is written, "flip(p=0.3)", and its name alone; the
 * caller's. -ENOENT: there are not so many. -EINVAL: no such grammar.
 */
int edit_op(const char *text, size_t i, char **written, char **name);

/* The text without operation `i`. -ENOENT: nothing would be left of its
   statement. */
int edit_without(const char *text, size_t i, char **out);

/*
 * The text with an operation put before all others of each statement that
 * resizes, but after its decode() if `after_decode`; else instead of it.
 * -ENOENT: no statement resizes.
 */
int edit_with_first(const char *text, const char *operation, bool after_decode,
		    char **out);

/* The text with an operation before the first one of that name. -ENOENT */
int edit_with_before(const char *text, const char *operation, const char *name,
		     char **out);

/* Whether an operation of that name is there. */
bool edit_has(const char *text, const char *name);

#endif

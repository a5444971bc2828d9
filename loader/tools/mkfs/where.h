/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The condition of --where: comparisons of a source's fields with values,
 * joined by `and`.
 *
 *	label in 1,5,9 and score >= 0.5
 *	label in cat,"red fox"
 *	split != test
 *
 * The comparisons are == (or =), !=, <, <=, >, >=, `in` and `not in`. Numbers
 * compare as numbers; names of classes stand for their numbers; texts compare
 * by their bytes. Quote a value that has a space, a comma or a quote.
 */
#ifndef LOADER_TOOLS_MKFS_WHERE_H
#define LOADER_TOOLS_MKFS_WHERE_H

#include <stdbool.h>

#include "fs/base/util/log.h"
#include "loader/tools/input/input.h"

struct where;

/* -EINVAL, logged: not a condition on fields of the source. */
int where_parse(const char *text, const struct input *in, struct log *log,
		struct where **out);
void where_free(struct where *w); /* takes NULL */

/* Sets wanted[i] for the fields i that the condition reads. */
void where_mark(const struct where *w, bool *wanted);

bool where_holds(const struct where *w, const struct input_value *values);

#endif

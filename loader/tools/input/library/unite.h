/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several files of a library as one source: every file has the columns of the
 * first one, by name, form (form.h) and the names of its classes, whose numbers
 * are mapped (class_union.h). The description has these facts of each file if
 * they differ anywhere (schema.h).
 */
#ifndef LOADER_TOOLS_INPUT_LIBRARY_UNITE_H
#define LOADER_TOOLS_INPUT_LIBRARY_UNITE_H

#include <jansson.h>

#include "loader/tools/input/input.h"

struct unite;

/* Checks the files of a description, and gives fields of the input the names of
   all their classes. *out is NULL if all files are equal. Failures are logged:
   -EINVAL if a file has other columns. */
int unite_open(const json_t *description, struct input *in, struct unite **out);
void unite_close(struct unite *u); /* takes NULL */

/* Sets the number of a label of a file among all classes. */
int unite_label(const struct unite *u, const struct input *in, size_t field,
		size_t part, struct input_value *value,
		struct input_error *error);

#endif

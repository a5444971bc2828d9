/* SPDX-License-Identifier: Apache-2.0 */
/* A column of a manifest: the type that all its values have, and the values of
   samples. */
#ifndef LOADER_TOOLS_INPUT_COLUMN_H
#define LOADER_TOOLS_INPUT_COLUMN_H

#include <jansson.h>

#include "loader/tools/input/input.h"

/* The forms that a column has. */
enum column_form {
	COLUMN_FORM_FOUND, /* by the values */
	COLUMN_FORM_INT,
	COLUMN_FORM_FLOAT,
	COLUMN_FORM_TEXT,
	COLUMN_FORM_IMAGE, /* path of an image file */
	COLUMN_FORM_BYTES, /* path of any file */
	COLUMN_FORM_JSON,
	COLUMN_FORM_CLASS,
	COLUMN_FORM_INTS, /* list of a fixed length */
	COLUMN_FORM_FLOATS,
};

struct column {
	enum column_form form;
	unsigned seen;	 /* kinds of values */
	size_t length;	 /* of lists of numbers */
	bool has_length; /* there was a list */
	bool ragged;	 /* lists have several lengths */
	char **classes;	 /* sorted */
	size_t num_classes;
	size_t classes_room;
	size_t classes_size; /* bytes of all names with their NULs */
};

/* A value in a record. */
struct cell {
	const json_t *json; /* NULL: CSV */
	const char *text;   /* CSV, and strings of JSON; ends in a NUL */
	size_t size;
};

void column_fini(struct column *c);

/* If a name ends in ":int" or another type, removes that and sets the form. */
void column_declare(struct column *c, char *name);

/* Looks at a value while types are found. -EINVAL with *why if the column
   cannot have it, or -ENOMEM. */
int column_look(struct column *c, const struct cell *cell, const char **why);

/* Sets form and field after the last value. The field's classes belong to the
   column. `json`: the values were JSON. */
void column_finish(struct column *c, bool json, struct input_field *f);

/* Converts a value. Files are relative to the directory `base`. */
int column_value(const struct column *c, const struct cell *cell,
		 const char *base, struct input_memory *memory,
		 struct input_value *out, struct input_error *error);

#endif

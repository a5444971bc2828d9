/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a source by Python, as JSON:
 *
 *	title	what the source is, for messages: "Parquet files"
 *	unit	what a sample is called there: "row"
 *	samples	their number
 *	rows	of a block, so that it has some megabytes
 *	ignored	files that are no samples
 *	keep	true: images stay as they are unless an option asks for another
 *		form
 *	lanes	true: several processes read faster than one
 *	parts	[path, number of its first sample] in order
 *	forms	of each part {name: {form, classes}}, if parts differ: see
 *		unite.h
 *	fields	{name, type, dtype, shape, classes, tensor, refused, types}: see
 *		struct input_field
 */
#ifndef LOADER_TOOLS_INPUT_LIBRARY_SCHEMA_H
#define LOADER_TOOLS_INPUT_LIBRARY_SCHEMA_H

#include <jansson.h>

#include "loader/tools/input/input.h"

/* Adds the fields to the input, and sets its other members. The input refers to
   strings of the description. Failures are logged: -EPROTO if it is none. */
int schema_read(const json_t *description, struct input *in);

/* Adds one field. */
int schema_add_field(const json_t *description, struct input *in);

/* Returns the part of a sample, and sets *first to the part's first sample. */
size_t schema_part(const json_t *description, uint64_t sample, uint64_t *first);

/* Prints "PATH, row 5". */
void schema_describe(const json_t *description, uint64_t sample, char *out,
		     size_t size);

#endif

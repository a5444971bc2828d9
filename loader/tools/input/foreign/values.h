/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of values that several kinds of sources share. */
#ifndef LOADER_TOOLS_INPUT_FOREIGN_VALUES_H
#define LOADER_TOOLS_INPUT_FOREIGN_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/tools/input/input.h"

/* Returns whether bytes begin like an image file of a common format, even of a
   format that this build cannot decode. */
bool input_is_image(const void *bytes, uint64_t size);

/* Checks a value that a field of a type holds: INPUT_TEXT and INPUT_JSON are
   UTF-8 without a NUL. Returns -EBADMSG. */
int input_check_value(const struct input_field *field,
		      const struct input_value *value,
		      struct input_error *error);

/* Returns the value of IEEE's half precision. */
double input_half_float(uint16_t bits);

/* Parses index.json or the like, a file of at most 256 MiB. The caller drops
   the reference. Failures are logged. */
int input_load_json(const char *path, struct log *log, json_t **out);

/* Returns the first key of a JSON object in `path`/`name`, without parsing the
   rest, or false. */
bool input_first_key(const char *path, const char *name, char *out,
		     size_t size);

#endif

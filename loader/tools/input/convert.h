/* SPDX-License-Identifier: Apache-2.0 */
/* Values out of text, and the first bytes of image files. */
#ifndef LOADER_TOOLS_INPUT_CONVERT_H
#define LOADER_TOOLS_INPUT_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a whole decimal integer with an optional sign; no blanks. */
bool convert_int(const char *text, size_t size, int64_t *out);

/* Parses a whole decimal number, "nan", "inf" or "infinity", in upper or lower
   case; no blanks. */
bool convert_float(const char *text, size_t size, double *out);

/* Removes blanks and line ends at both ends. */
void convert_strip(const char **text, size_t *size);

/* Returns whether the bytes begin as an image file does. */
bool convert_is_image(const uint8_t *bytes, size_t size);

/* Returns whether the text is JSON of any type, without a NUL. */
bool convert_is_json(const char *text, size_t size);

#endif

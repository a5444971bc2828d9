/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the syntax of a JSON text. */
#ifndef LOADER_TOOLS_FSCK_JSON_TEXT_H
#define LOADER_TOOLS_FSCK_JSON_TEXT_H

#include <stddef.h>

enum { JSON_TEXT_DEPTH = 1024 };

/*
 * Returns NULL if the text is one JSON value, or what is wrong, with its offset
 * in *at. Python's json module is the measure: NaN, Infinity and -Infinity are
 * numbers. Values may be nested JSON_TEXT_DEPTH deep. Takes little memory.
 */
const char *json_text_check(const char *text, size_t size, size_t *at);

#endif

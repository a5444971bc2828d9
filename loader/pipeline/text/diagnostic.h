/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages about a text, with the line and the column. */
#ifndef LOADER_PIPELINE_TEXT_DIAGNOSTIC_H
#define LOADER_PIPELINE_TEXT_DIAGNOSTIC_H

#include <stddef.h>

/* A text, and the memory for a message about it, one line. out may be NULL. */
struct diagnostic {
	const char *text;
	char *out;
	size_t size;
};

/*
 * Writes "line L, column C: MESSAGE, in `...'" (the line only where the text
 * has several) for the byte at offset `at`, with control characters tamed.
 * Returns -EINVAL.
 */
int complain(const struct diagnostic *c, size_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Complains of a bracket that opens a list: numbers are quoted, and operations
   stand alone. */
int complain_bracket(const struct diagnostic *c, size_t at);

#endif

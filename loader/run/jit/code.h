/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text under construction. It remembers running out of memory, so callers need
 * not check after every line.
 */
#ifndef LOADER_RUN_JIT_CODE_H
#define LOADER_RUN_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. */
struct code {
	char *text;
	size_t size;
	size_t room;
	bool failed;
};

void code_add(struct code *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The text as it is. */
void code_put(struct code *c, const char *text);

/*
 * Returns the text, which the caller frees, or NULL: no memory. `c` is empty
 * then.
 */
char *code_take(struct code *c);

#endif

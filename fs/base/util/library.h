/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An optional shared library, loaded at run time: neither building nor starting
 * needs it. A table of its functions has the offsets of their pointers in a
 * struct.
 * Any thread.
 */
#ifndef FS_BASE_UTIL_LIBRARY_H
#define FS_BASE_UTIL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
	const char *name;
	size_t offset; /* of its pointer in the struct */
	bool required; /* false: the pointer may stay NULL */
};

/*
 * Opens a library by its path, or by a name that dlopen(3) searches for. NULL
 * if there is none. `loaded`: only if the process has it already.
 */
void *library_open(const char *name, bool loaded);
void library_close(void *library);

/*
 * Finds the first library loaded in the process whose path contains the text.
 * Returns false, with nothing written, if there is none.
 */
bool library_find_loaded(const char *text, char *path, size_t size);

/*
 * Sets the pointers of the struct. Returns NULL, or the name of the first
 * required function that is missing.
 */
const char *library_fill(void *library, const struct library_symbol *symbols,
			 size_t n, void *functions);

/* The reason why this thread's last library_open() failed. */
const char *library_error(void);

#endif

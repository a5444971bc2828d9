/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared library that may not be there: found when the program runs, so that
 * neither building nor starting needs it. Its functions are rows of a table
 * that fill a struct of function pointers. Any thread.
 */
#ifndef LOADER_UTIL_LIBRARY_H
#define LOADER_UTIL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
	const char *name;
	size_t offset; /* of its pointer in the struct */
	bool required; /* else the pointer may stay NULL */
};

/*
 * By a path, or by a name that is searched for as dlopen(3) does; NULL where
 * there is none. `loaded`: only if the process has it already.
 */
void *library_open(const char *name, bool loaded);
void library_close(void *library);

/*
 * The path of a library that the process has loaded, the first that holds the
 * text. False, and nothing written: there is none.
 */
bool library_find_loaded(const char *text, char *path, size_t size);

/* Fills the struct. NULL, or the name of the first that is required and
   missing. */
const char *library_fill(void *library, const struct library_symbol *symbols,
			 size_t n, void *functions);

/* Why the last library_open() of this thread found nothing. */
const char *library_error(void);

#endif

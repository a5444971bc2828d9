/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of header lines that every request carries. Empty lines and lines that
 * begin with "#" do not count. If the file has one line, without a colon, that
 * is a bearer token.
 */
#ifndef FS_SOURCE_KEYS_HEADER_FILE_H
#define FS_SOURCE_KEYS_HEADER_FILE_H

#include <stdbool.h>

#include "fs/source/keys/session.h"

enum {
	HEADER_FILE_LINES = 10,
	/* The limit of all lines: servers take less, and curl fails with more.
	 */
	HEADER_FILE_BYTES = 32 << 10,
};

struct header_file {
	char *at[HEADER_FILE_LINES]; /* "Name: value" */
	size_t num;
	size_t size; /* bytes of all lines */
	bool has_authorization;
};

/* Reads a file. The caller calls header_file_fini() in any case. Results of a
   search. */
int header_file_read(struct search *search, const char *path,
		     struct header_file *out);
void header_file_fini(struct header_file *file);

/* Parses a text that ends with a NUL, and changes it. */
int header_file_parse(struct search *search, const char *path, char *text,
		      struct header_file *out);

#endif

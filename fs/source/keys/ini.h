/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of sections and keys, as AWS's programs read them. A "#" or ";" at the
 * beginning of a line, or after a space, begins a comment. Indented lines after
 * a key without a value are keys of a block: "s3 =", "  addressing_style =
 * path" is the key "s3.addressing_style". Other indented lines, and lines that
 * are neither a section nor a key, are ignored. The last value of a key counts.
 */
#ifndef FS_SOURCE_KEYS_INI_H
#define FS_SOURCE_KEYS_INI_H

#include <stddef.h>

enum {
	INI_SIZE_MAX = 1 << 20,
	INI_KEYS_MAX = 16384,
};

struct ini_key {
	char *section; /* the text between the brackets, without outer spaces */
	char *name;    /* in lower case */
	char *value;   /* may be a secret */
};

struct ini {
	struct ini_key *at;
	size_t num;
};

/* Parses a text. The caller calls ini_fini() in any case. -EFBIG: a limit is
   exceeded, -ENOMEM. */
int ini_parse(const char *text, size_t size, struct ini *out);
void ini_fini(struct ini *ini);

/* The value of a key, or NULL. */
const char *ini_get(const struct ini *ini, const char *section,
		    const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, and any text, as parts of names in a mount, and texts of any length.
   Pure functions. */
#ifndef FS_BASE_UTIL_NAME_H
#define FS_BASE_UTIL_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	NAME_DIGITS_MAX = 20,
	NAME_ESCAPED = 3, /* as many bytes each byte may become */
};

/* Converts any text to a file name: letters, digits, '_', '-' and inner dots
   stay as they are, any other byte becomes %XX, and an empty text is "%". `out`
   has room for NAME_ESCAPED times the text and 2 bytes. */
void name_escape(const char *text, char *out);

/*
 * Writes any text as a part of one line: control characters and backslashes
 * become \ooo in octal, as in /proc/mounts. name_unquote() turns such a text
 * back, in place.
 */
void name_quote(FILE *out, const char *text);
void name_unquote(char *text);

/* Makes a text harmless for a terminal: the bytes of control characters, also of
   U+0080 to U+009F in UTF-8, become '?'. */
void name_tame(char *text);

/* Prints a text as name_tame() would change it. */
void name_print(FILE *out, const char *text);

/* Returns the number of digits of every number in [0, n): at least 6. */
unsigned name_digits(uint64_t n);

/* Writes `number` with `digits` digits, and a NUL. Returns the length. */
unsigned name_number(char out[NAME_DIGITS_MAX + 1], uint64_t number,
		     unsigned digits);

/* Reads a number below n that is written with name_digits(n) digits at the
   start of `name`; *rest is what follows. Returns false for every other
   spelling. */
bool name_parse_number(const char *name, uint64_t n, uint64_t *number,
		       const char **rest);

/* Reads a whole decimal number without sign and leading zeros. */
bool name_parse_u64(const char *text, size_t size, uint64_t *out);

/* Prints a text to *out, which the caller frees. -ENOMEM: *out is NULL, which
   asprintf() does not guarantee. */
int text_print(char **out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif

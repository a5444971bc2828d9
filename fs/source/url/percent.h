/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding of the parts of a URL. */
#ifndef FS_SOURCE_URL_PERCENT_H
#define FS_SOURCE_URL_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#define URL_LOWER "abcdefghijklmnopqrstuvwxyz"
#define URL_LETTERS URL_LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define URL_DIGITS "0123456789"
#define URL_UNRESERVED URL_LETTERS URL_DIGITS "-._~"
#define URL_KEEP_PATH URL_UNRESERVED "!$&'()*+,;=:@/"
#define URL_KEEP_QUERY URL_KEEP_PATH "?"

/* Sets *out to a text whose bytes outside `keep` are encoded, except for
   `escapes`: those that are encoded already. The caller frees it. -ENOMEM. */
int percent_encode(const char *text, size_t size, const char *keep,
		   bool escapes, char **out);

/* Sets *out to a text whose bytes other than letters, digits and "-._~" are
   percent-encoded; with `slashes`, slashes, too. The caller frees it. */
int url_encode(const char *text, bool slashes, char **out);

/* Decodes in place. Returns false for an encoded NUL. */
bool percent_decode(char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of schemes. */
#ifndef FS_SOURCE_URL_SCHEME_H
#define FS_SOURCE_URL_SCHEME_H

#include "fs/source/url/parts.h"

/* Returns the scheme of a text, and sets *rest to the text after "://". NULL:
   there is none. */
const struct url_scheme *url_scheme_of(const char *text, const char **rest);

enum { URL_SCHEMES_SIZE = 64 };

/* Writes the names, "http, https". Returns `out`. */
const char *url_scheme_names(char out[URL_SCHEMES_SIZE]);

#endif

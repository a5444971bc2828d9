/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the form BUCKET/KEY: the key is literal. */
#ifndef FS_SOURCE_URL_BUCKET_KEY_H
#define FS_SOURCE_URL_BUCKET_KEY_H

#include "fs/source/url/parts.h"

/* A member of struct url_scheme. */
int url_bucket_parse(struct url *url, const char *rest, char why[URL_WHY_SIZE]);

/* Returns the "?" before the query of a key, or NULL. */
const char *url_bucket_query(const struct url_scheme *scheme, const char *key);

#endif

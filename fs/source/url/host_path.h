/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the form HOST/PATH?QUERY. */
#ifndef FS_SOURCE_URL_HOST_PATH_H
#define FS_SOURCE_URL_HOST_PATH_H

#include "fs/source/url/parts.h"

/* -EINVAL: the text of a URL, of any form, is too long or has a control
   character. */
int url_http_check(const char *text, char why[URL_WHY_SIZE]);

/* Members of a scheme. */
int url_http_parse(struct url *url, const char *rest, char why[URL_WHY_SIZE]);
int url_http_request(const struct url *url, const struct url_place *place,
		     struct url_request *out, char why[URL_WHY_SIZE]);

/* Frees the parts of this form. */
void url_http_fini(struct url *url);

/* Sets *out to HOST or HOST:PORT. The caller frees it. -ENOMEM. */
int url_http_host(const struct url *url, char **out);

#endif

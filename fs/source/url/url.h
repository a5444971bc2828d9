/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of datasets: what a user writes, the URL of a request, and the form for
 * messages. Pure functions that open nothing.
 *
 *	http://HOST/PATH, https://HOST/PATH	bytes that a URL cannot contain
 *						are encoded, others are kept
 *	s3://BUCKET/KEY, gs://BUCKET/KEY	the key is literal: any bytes
 *						but control characters
 *	az://CONTAINER/BLOB			literal, too; the query is a SAS
 *	az://CONTAINER@ACCOUNT/BLOB
 *
 * If the text after the last "?" of an S3 URL has the parameter versionId, or
 * generation for gs, or if it is empty, it is a query. A key that would be
 * mistaken for one is written with a "?" at its end.
 */
#ifndef FS_SOURCE_URL_URL_H
#define FS_SOURCE_URL_URL_H

#include "fs/source/url/parts.h"

/* Returns whether a path is a URL of a scheme above. */
bool url_is(const char *path);

/*
 * Sets *path to the path of a file: URL, or to NULL if the text is not one. The
 * caller frees it. -EINVAL: the URL names another machine, or no path.
 */
int url_file_path(const char *text, char **path);

/* Parses a URL. The caller calls url_fini() in any case. -EINVAL: `why` has the
   reason, without secrets. -ENOMEM. */
int url_parse(const char *text, struct url *out, char why[URL_WHY_SIZE]);
void url_fini(struct url *url);

/* Makes the URL of a request; NULL place: the defaults. The caller calls
   url_request_fini() in any case. Errors as url_parse(). */
int url_request(const struct url *url, const struct url_place *place,
		struct url_request *out, char why[URL_WHY_SIZE]);
void url_request_fini(struct url_request *request);

/* Returns a URL for messages, without userinfo and query, even if url_parse()
   refuses it, for example because of its scheme. Other paths stay as they are.
   NULL: no memory. The caller frees it. */
char *url_visible(const char *text);

/*
 * Returns the URL of the file whose name is that of `text` and a suffix, as
 * ".sums". It keeps the query, except for a version, because that belongs to
 * one file. Other paths become path and suffix. NULL: no memory, or a bad URL.
 * The caller frees it.
 */
char *url_sibling(const char *text, const char *suffix);

#endif

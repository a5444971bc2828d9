/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a URL. Opening reads its first bytes, which come with its size
 * and version, and keeps these bytes for the readers of the header.
 */
#ifndef FS_SOURCE_OBJECT_URL_H
#define FS_SOURCE_OBJECT_URL_H

#include "fs/source/local/options.h"
#include "fs/source/local/source.h"

/* Bytes of the first request: a new connection carries them in one round trip.
 */
enum { URL_SOURCE_HEAD = 12 << 10 };

/* As source_open(). -ENOTSUP: there is no libcurl. */
int url_source_open(const char *url, const struct source_options *options,
		    struct log *log, struct source **out);

/*
 * Moves the first bytes of the object to the caller, who frees them: *size
 * bytes, the whole object if it is smaller than URL_SOURCE_HEAD. The source
 * reads these bytes from the server from then on. NULL: they are gone. Call it
 * before other threads use the source.
 */
void *url_source_take_head(struct source *source, size_t *size);

/* The identity of the object (identity.h), which is fixed. Belongs to the
   source. */
const char *url_source_identity(const struct source *source);
/* Whether another process that opens the same bytes has the same identity. */
bool url_source_is_strong(const struct source *source);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a URL as an output. Two rooms of the disk hold it back: what
 * comes before the body, and nothing else if the server has multipart uploads
 * (s3, gs), because the body goes to it in parts meanwhile
 * (fs/source/upload/multipart.h). Other servers take an object in one request,
 * which begins with its size. Therefore all of it is written to a file without
 * a name in $TMPDIR first.
 */
#ifndef FS_DATA_WRITER_OUTPUT_URL_H
#define FS_DATA_WRITER_OUTPUT_URL_H

#include "fs/data/writer/output.h"

extern const struct output_ops output_url;

/* Stores a small object in place of any other one. Failures are logged. */
int output_url_save(const struct output_setup *setup, const void *bytes,
		    size_t size);

#endif

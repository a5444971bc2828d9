/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as a source, or several of them, one after the other. */
#ifndef FS_SOURCE_LOCAL_FILE_H
#define FS_SOURCE_LOCAL_FILE_H

#include "fs/source/local/options.h"
#include "fs/source/local/source.h"

/* Opens a regular file, as source_open() does. On a network file system, reads
   that fail are tried again for options->retry_ms. */
int file_source_open(const char *path, const struct source_options *options,
		     struct log *log, struct source **out);

bool file_source_is(const struct source *source);

/* For join.h: source_join() of files alone, without its stat. */
int file_source_join(struct source *const *sources, const uint64_t *bases,
		     size_t n, const char *path, struct source **out);

#endif

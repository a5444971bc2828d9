/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as a source, or several of them, one after the other. */
#ifndef FS_SOURCE_FILE_H
#define FS_SOURCE_FILE_H

#include "fs/source/source.h"

/* Opens a regular file, as source_open() does. */
int file_source_open(const char *path, struct log *log, struct source **out);

/*
 * Makes one source of several files: the first byte of file i is at bases[i],
 * which ascend by at least its size and are multiples of SOURCE_ALIGN. The gaps
 * between them read as zeros. Its owner and mode admit users who may read all
 * files. The sources remain the caller's, and must outlive it. -ENOMEM.
 */
int source_join(struct source *const *sources, const uint64_t *bases, size_t n,
		const char *path, struct source **out);

#endif

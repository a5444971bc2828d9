/* SPDX-License-Identifier: Apache-2.0 */
/* A file that the text of a pipeline names, read whole. */
#ifndef LOADER_GRAPH_READ_FILE_H
#define LOADER_GRAPH_READ_FILE_H

#include <stddef.h>

/*
 * Regular files of at most `max` bytes. A NUL follows the bytes, which the
 * caller frees. -EINVAL: no regular file; -EFBIG.
 */
int contents_read(const char *path, size_t max, char **out, size_t *size);

#endif

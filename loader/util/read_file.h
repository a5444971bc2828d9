/* SPDX-License-Identifier: Apache-2.0 */
/* Files read whole into memory, up to a limit. */
#ifndef LOADER_UTIL_READ_FILE_H
#define LOADER_UTIL_READ_FILE_H

#include <stddef.h>

/*
 * A regular file of at most `max` bytes. A NUL follows the bytes, which the
 * caller frees. -EINVAL: not a regular file. -EFBIG: it is larger.
 */
int read_file(const char *path, size_t max, char **out, size_t *size);

/* The same from an open file of any kind, from its position to its end. */
int read_file_fd(int fd, size_t max, char **out, size_t *size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files into memory, up to a limit. */
#ifndef LOADER_UTIL_READ_FILE_H
#define LOADER_UTIL_READ_FILE_H

#include <stddef.h>

/*
 * Reads a regular file of at most `max` bytes, and appends a NUL. The caller
 * frees the bytes. Returns -EINVAL if it is not a regular file, or -EFBIG if it
 * is larger.
 */
int read_file(const char *path, size_t max, char **out, size_t *size);

/* Reads an open file of any kind from its position to its end. */
int read_file_fd(int fd, size_t max, char **out, size_t *size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Files to parse, and a small part of a file in memory. Parsers read a header
   here and there, and skip the data between. */
#ifndef LOADER_TOOLS_FORMATS_FILE_H
#define LOADER_TOOLS_FORMATS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is closed. */
struct file {
	int fd; /* -1 or 0: none */
	uint64_t size;
};

/* Opens a regular file; never waits for a FIFO. -errno, or -EINVAL if it is
   another kind of file. */
int file_open(const char *path, struct file *out);
void file_close(struct file *f);

/* Makes a file without a name below $TMPDIR (default: /var/tmp), with size 0.
   -errno. */
int file_make(struct file *out);

/* Reads exactly `size` bytes. -errno, or -EBADMSG if the file ends before. */
int file_read(const struct file *f, void *to, size_t size, uint64_t off);
int file_write(const struct file *f, const void *from, size_t size,
	       uint64_t off);

enum { WINDOW_SIZE = 4096 };

/* Bytes of a file, or of memory. Set `file`, or `memory` and `size`; the rest
   is zero. */
struct file_window {
	const struct file *file;
	const uint8_t *memory;
	uint64_t size; /* of the memory */
	int error;     /* of the last window_at() that failed */
	uint64_t off;  /* of the bytes below */
	size_t have;
	uint8_t bytes[WINDOW_SIZE];
};

/* Returns `size` bytes at `off`, WINDOW_SIZE at most. They are valid until the
   next call. NULL: w->error is set, -EBADMSG if the file ends before. */
const uint8_t *window_at(struct file_window *w, uint64_t off, size_t size);

#endif

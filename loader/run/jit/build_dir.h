/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private temporary directory to build code in. Where the directory above it
 * has no sticky bit, other users can rename or replace it at any time. So it is
 * opened once and checked: it belongs to this user, no other may enter it, and
 * it is empty. From then on it is used by its descriptor alone, and a path is
 * never trusted again.
 */
#ifndef LOADER_RUN_JIT_BUILD_DIR_H
#define LOADER_RUN_JIT_BUILD_DIR_H

#include <stddef.h>
#include <stdint.h>

enum { BUILD_DIR_NAME = 32 };

struct build_dir {
	int fd;
	int parent;
	char name[BUILD_DIR_NAME]; /* in `parent`, unless it was renamed */
};

/*
 * Makes a directory in $TMPDIR, /tmp or /dev/shm, the first that has room for a
 * private one. -errno of the last attempt.
 */
int build_dir_open(struct build_dir *out);

/* Removes the files, and the directory if it still has its name. */
void build_dir_close(struct build_dir *d);

/* Writes a file that is not there yet. */
int build_dir_write(const struct build_dir *d, const char *name,
		    const char *text);

/*
 * Reads a regular file of this user of up to `max` bytes; the caller frees
 * *bytes. -EINVAL: there is none.
 */
int build_dir_read(const struct build_dir *d, const char *name, size_t max,
		   uint8_t **bytes, size_t *size);

#endif

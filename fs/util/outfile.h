/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears under its name only when it is complete, replacing what
 * had the name before. Until then it has no name (O_TMPFILE), so that however
 * the program ends nothing is left; on file systems without that it has a
 * temporary name, ".beton-XXXXXXXX", in the same folder. One thread.
 */
#ifndef FS_UTIL_OUTFILE_H
#define FS_UTIL_OUTFILE_H

#include <stddef.h>
#include <stdint.h>

#include "fs/util/log.h"

struct outfile;

/*
 * Prepares to write `path`; a symbolic link to a file is followed. Refuses
 * what is there and is no regular file. All failures, here and below, are
 * logged and name the path; `log` must outlive the file.
 */
int outfile_open(const char *path, struct log *log, struct outfile **out);

/* Writes to an open file instead, which stays the caller's and has whatever
   name it has; `name` is for messages. */
int outfile_open_to(int fd, const char *name, struct log *log,
		    struct outfile **out);

/* Writes all bytes at `off`; what is skipped reads as zeros. */
int outfile_write(struct outfile *f, const void *bytes, size_t size,
		  uint64_t off);

/* Moves [from, end of the file at `size`) down to `to`, and ends it there. */
int outfile_move_down(struct outfile *f, uint64_t from, uint64_t to,
		      uint64_t size);

/* Makes the file `size` bytes long. */
int outfile_resize(struct outfile *f, uint64_t size);

/*
 * Waits until all is on the disk and gives the file its name. On failure
 * nothing is left and the old file stays. *f becomes NULL either way. An open
 * file is only closed.
 */
int outfile_publish(struct outfile **f);

/* Drops what was written; takes NULL. */
void outfile_abort(struct outfile **f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears under its name only when it is complete, and then
 * replaces the file that had the name. Until then it has no name (O_TMPFILE),
 * so that nothing is left however the program ends. On file systems without
 * O_TMPFILE it has a temporary name, ".beton-XXXXXXXX.tmp", in the same
 * directory. One thread.
 */
#ifndef FS_BASE_FILES_OUTFILE_H
#define FS_BASE_FILES_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/base/util/log.h"

struct outfile;

/*
 * Prepares to write `path`, and follows symbolic links by the rule of
 * fs/base/files/place.h. If anything but a regular file has the name, the call
 * fails. It also fails with -EEXIST if the file is a dataset, unless
 * `is_dataset`, or if not place_is_for_dataset() otherwise. This module logs
 * all its failures with the path; `log` must outlive the file.
 */
int outfile_open(const char *path, bool is_dataset, struct log *log,
		 struct outfile **out);

/* Like outfile_open(), for a name in the open directory `dir`. A link of that
   name is replaced, not followed. `path` is for messages. */
int outfile_open_in(int dir, const char *name, const char *path,
		    struct log *log, struct outfile **out);

/* Writes to an open file instead, which remains the caller's and keeps its
   name; `name` is for messages. */
int outfile_open_to(int fd, const char *name, struct log *log,
		    struct outfile **out);

/* Writes all bytes at `off`; gaps read as zeros. */
int outfile_write(struct outfile *f, const void *bytes, size_t size,
		  uint64_t off);

/* Reads back bytes that were written. */
int outfile_read(struct outfile *f, void *bytes, size_t size, uint64_t off);

/*
 * Copies bytes of the open file `fd` within the kernel, and shares whole blocks
 * where the file system can. Returns the number of bytes copied, which may be
 * less than `size`. 0, not logged: the kernel cannot copy between these files,
 * or `fd` ends here; the caller reads and writes instead.
 */
int64_t outfile_copy(struct outfile *f, int fd, uint64_t from, uint64_t size,
		     uint64_t off);

/* Opens a file without a name on the same disk, which the caller closes.
   -ENOTDIR, not logged: the file is one of outfile_open_to(). */
int outfile_scratch(struct outfile *f, int *fd);

/* Moves the bytes [from, size) down to `to` and truncates the file behind them;
   `size` is the file's. */
int outfile_move_down(struct outfile *f, uint64_t from, uint64_t to,
		      uint64_t size);

/* Makes the file `size` bytes long. */
int outfile_resize(struct outfile *f, uint64_t size);

/* Requires that the file of `old` still has the name, unchanged, when the new
   file gets it. If two programs expect the same file, one succeeds. */
void outfile_expect(struct outfile *f, const struct stat *old);

/*
 * Waits until all bytes are on the disk and gives the file its name. If it
 * replaces a file that is not place_is_foreign(), it takes over mode, access
 * control list and, where permitted, owner and group. On failure the new file
 * is removed, and the old file stays. -ESTALE: another file than that of
 * outfile_expect() has the name. *f becomes NULL either way. A file of
 * outfile_open_to() is neither synced nor renamed, and one of outfile_open_in()
 * is not synced, as it may be one of many.
 */
int outfile_publish(struct outfile **f);

/* Discards the file; takes NULL. */
void outfile_abort(struct outfile **f);

/* Writes a whole file, as outfile_open() and outfile_publish() do, in place of
   one of any kind. */
int outfile_save(const char *path, const void *bytes, size_t size,
		 struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a file that is to be written: an open directory, and a name in
 * it. A writer uses only these two. Therefore another user who exchanges a
 * directory or a link of the path meanwhile cannot redirect the writer.
 *
 * This module follows symbolic links, except those that another user left in a
 * directory such as /tmp. The rule is the kernel's for fs.protected_symlinks
 * (proc_sys_fs(5)), and applies even if that setting is off.
 */
#ifndef FS_BASE_FILES_PLACE_H
#define FS_BASE_FILES_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

struct place {
	int dir;       /* the directory, with O_PATH */
	char *name;    /* no link, unless it became one meanwhile */
	bool is_taken; /* a regular file that is not foreign has the name */
};

/*
 * Finds the place of a path. The caller closes it. Logs nothing. -EISDIR,
 * -EINVAL: neither a regular file nor a free name. -EPERM: another user's link
 * in a directory such as /tmp. -ESTALE: the file was exchanged or has no name
 * any more.
 */
int place_open(const char *path, struct place *out);

/* Finds the place of a name in the open directory `dir`. If the name is a link,
   the place is that of the link itself and counts as free. */
int place_open_in(int dir, const char *name, struct place *out);

/* Opens the directory `path` with O_PATH, and makes it if the name is free.
   Follows links like place_open(), with -EPERM. */
int place_make_dir(const char *path, int *out);

/* Returns whether an open file begins like a dataset. Only a dataset may
   replace such a file. */
bool place_has_dataset(int fd);

/* Returns whether a dataset may replace an open file: a dataset, an empty file,
   or one that begins with zeros, as FFCV leaves an incomplete dataset. */
bool place_is_for_dataset(int fd);

/* Describes an error of place_open() and place_make_dir(). */
const char *place_why(int error);

/* Closes a place that was opened, or { .dir = -1 }. */
void place_close(struct place *p);

/* Returns whether `file` may be a trap of another user: all users may write to
   the directory, and the file belongs neither to this user nor to the owner of
   the directory. */
bool place_is_foreign(const struct place *p, const struct stat *file);

#endif

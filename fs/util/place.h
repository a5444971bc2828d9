/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a file that is to be written: an open folder, and a name in it.
 * A writer uses only these, so no folder or link that another user exchanges
 * meanwhile leads it elsewhere.
 *
 * Symbolic links are followed, but not those that another user left in a
 * folder such as /tmp. The rule is the kernel's for fs.protected_symlinks
 * (proc_sys_fs(5)), and holds whatever that is set to.
 */
#ifndef FS_UTIL_PLACE_H
#define FS_UTIL_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

struct place {
	int folder;    /* with O_PATH */
	char *name;    /* no link, unless it became one meanwhile */
	bool is_taken; /* a regular file has the name that is not foreign */
};

/*
 * Finds the place of a path. The caller closes it. Logs nothing. -EISDIR,
 * -EINVAL: neither a regular file nor a free name. -EPERM: another user's link
 * in a folder such as /tmp. -ESTALE: the file was exchanged or has no name any
 * more.
 */
int place_open(const char *path, struct place *out);

/* The place of a name in an open folder. A link of that name is not followed:
   the place is the link's own, and counts as free. */
int place_open_in(int folder, const char *name, struct place *out);

/* Opens the folder of a path with O_PATH, and makes it if the name is free.
   Follows links as place_open(), with -EPERM. */
int place_make_folder(const char *path, int *out);

/* Whether an open file begins as a dataset does, which nothing but a dataset
   replaces. */
bool place_has_dataset(int fd);

/* Words for the error of a function above. */
const char *place_why(int error);

/* For a place that was opened, or { .folder = -1 }. */
void place_close(struct place *p);

/*
 * Whether a file there is one that another user could leave for us to find:
 * all users may write to the folder, and the file belongs neither to this one
 * nor to the folder's owner.
 */
bool place_is_foreign(const struct place *p, const struct stat *file);

#endif

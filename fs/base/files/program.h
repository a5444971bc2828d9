/* SPDX-License-Identifier: Apache-2.0 */
/* Finds programs by name. */
#ifndef FS_BASE_FILES_PROGRAM_H
#define FS_BASE_FILES_PROGRAM_H

#include <limits.h>

/*
 * Finds an executable file of this name in `list`, directories as in $PATH, and
 * writes its path. Ignores empty and relative entries, which refer to the
 * working directory. NULL is an empty list. 0 or -ENOENT.
 */
int program_find(const char *name, const char *list, char path[PATH_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the directories of datasets that share a mount. A pure function. */
#ifndef FS_MOUNT_DAEMON_DATASET_NAMES_H
#define FS_MOUNT_DAEMON_DATASET_NAMES_H

#include <stddef.h>

enum { NAME_DIRECTORY_SIZE = 256 };

/*
 * Writes the common part of the files of a pattern as a path for
 * name_datasets(): the part of the last name before all special characters, or
 * "dataset" if it is empty.
 */
void name_pattern(const char *pattern, char out[NAME_DIRECTORY_SIZE]);

/*
 * Names the directory of each dataset on a mount: its file name without
 * ".beton", otherwise unchanged. If an earlier dataset has that name, "~2",
 * "~3" and so on follow.
 */
void name_datasets(const char *const *paths, size_t n,
		   char (*out)[NAME_DIRECTORY_SIZE]);

#endif

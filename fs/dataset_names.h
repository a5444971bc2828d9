/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the directories of datasets that share a mount. A pure function. */
#ifndef FS_DATASET_NAMES_H
#define FS_DATASET_NAMES_H

#include <stddef.h>

enum { NAME_DIRECTORY_SIZE = 256 };

/*
 * The directories of several datasets on one mount: their file names without
 * ".beton"; the second of a name gets "~2", and so on. Everything else of a
 * file name stays as it is.
 */
void name_datasets(const char *const *paths, size_t n,
		   char (*out)[NAME_DIRECTORY_SIZE]);

#endif

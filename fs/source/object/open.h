/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the source of a path or a URL: each kind of source has a row. */
#ifndef FS_SOURCE_OBJECT_OPEN_H
#define FS_SOURCE_OBJECT_OPEN_H

#include "fs/source/local/options.h"
#include "fs/source/local/source.h"

/*
 * Opens a regular file, or the object of a URL; refuses anything else without
 * blocking. NULL options: those of $BETON_STORAGE_OPTIONS. Failures are logged
 * with the path. The log must outlive the source.
 */
int source_open(const char *path, const struct source_options *options,
		struct log *log, struct source **out);

#endif

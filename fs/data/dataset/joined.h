/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several files with the same fields as one dataset: their samples follow each
 * other, and so do their bytes in its source. Counts and bytes of its format
 * are sums. A field has the longest list of class names; the parts have none.
 */
#ifndef FS_DATA_DATASET_JOINED_H
#define FS_DATA_DATASET_JOINED_H

#include "fs/data/dataset/dataset.h"

/*
 * Opens the file or, if the path is a pattern, the files of
 * <fs/base/files/paths.h>. Failures are logged: those of dataset_open(), and
 * -EINVAL if the fields or class names of a file do not match those of the
 * first file, or a file is given twice. The log must outlive the dataset.
 */
int joined_open(const char *path, const struct source_options *options,
		struct log *log, struct dataset **out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several files with the same fields as one dataset: their samples follow each
 * other, and so do their bytes in its source. Counts and bytes of its format
 * are sums. A field has the longest list of names of classes; the parts keep
 * none.
 */
#ifndef FS_DATASET_JOINED_H
#define FS_DATASET_JOINED_H

#include "fs/dataset/dataset.h"

/*
 * Opens the file or, if the path is a pattern, the files of <fs/util/paths.h>.
 * Failures are logged: those of dataset_open(), and -EINVAL: a file has other
 * fields than the first, or names of classes that contradict, or it is given
 * twice. The log must outlive the dataset.
 */
int joined_open(const char *path, struct log *log, struct dataset **out);

#endif

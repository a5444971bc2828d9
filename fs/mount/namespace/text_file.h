/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files whose content is one text in memory.
 */
#ifndef FS_MOUNT_NAMESPACE_TEXT_FILE_H
#define FS_MOUNT_NAMESPACE_TEXT_FILE_H

#include "fs/mount/namespace/object.h"

/* Opens a file of `size` bytes at `text`. The text outlives the file. */
int ns_text_open(const char *text, size_t size, struct ns_file *out);

/* Opens a file whose text was written for this open alone. Takes ownership of
   the text, also on failure. */
int ns_snapshot(char *text, struct ns_file *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of the command line: the paths, patterns and URLs that they name.
 */
#ifndef FS_MOUNT_DAEMON_OPERAND_H
#define FS_MOUNT_DAEMON_OPERAND_H

#include <limits.h>

#include "fs/mount/daemon/served.h"

/* Bytes of the list of datasets that mount(8) shows as the source. mount(2)
   accepts a page of options, in which a comma takes two bytes. */
enum { OPERAND_SOURCE_MAX = 3000 };

/* Writes realpath() of a path that exists, otherwise the path from the root.
   An empty path, for example from an unset variable, does not mean the working
   directory. */
int operand_absolute(const char *path, char out[PATH_MAX]);

/* Sets the path of a dataset, and the source that /proc/mounts shows. Failures
   are logged. */
int operand_resolve(const char *text, struct log *log,
		    struct served_dataset *served);

#endif

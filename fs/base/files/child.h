/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that threads of a library start, in the process of a host program. */
#ifndef FS_BASE_FILES_CHILD_H
#define FS_BASE_FILES_CHILD_H

#include <spawn.h>

/* Resets the signals, which this thread may block, to those of a new process,
   in a group of its own. Returns 0 or an errno, as posix_spawn() does. */
int child_attributes(posix_spawnattr_t *attributes);

#endif

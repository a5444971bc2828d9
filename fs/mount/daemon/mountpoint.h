/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mountpoint: a directory, or "/dev/fd/N", an open /dev/fuse that another
 * process has mounted. Creates a missing directory, and unmounts the mount of a
 * dead daemon. Failures are logged.
 */
#ifndef FS_MOUNT_DAEMON_MOUNTPOINT_H
#define FS_MOUNT_DAEMON_MOUNTPOINT_H

#include <stdbool.h>

#include "fs/base/util/log.h"

/* Returns whether the path is "/dev/fd/N" with N above 2, which must not be
   resolved. */
bool mountpoint_is_fd(const char *path);

/* Checks whether a mount is possible, and changes nothing. */
int mountpoint_check(const char *path, struct log *log);

/* Sets *made if it created the directory: then call mountpoint_remove(). */
int mountpoint_prepare(const char *path, struct log *log, bool *made);

/* Unmounts the mounts of dead daemons at a path. -ENOTCONN: one is still
   there. */
int mountpoint_clear(const char *path);

/* Removes the directory if it is empty. */
void mountpoint_remove(const char *path);

/* Returns the remedy for a mount that was refused. `shared`: the mount was for
   other users too. NULL: the cause is unknown. */
const char *mountpoint_explain(bool shared);

#endif

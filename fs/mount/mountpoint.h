/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mounted on: a directory, made if it is missing, freed if a daemon
 * died on it; or "/dev/fd/N", an open /dev/fuse that somebody else mounted.
 * Failures are logged.
 */
#ifndef FS_MOUNT_MOUNTPOINT_H
#define FS_MOUNT_MOUNTPOINT_H

#include <stdbool.h>

#include "fs/util/log.h"

/* Whether the path is of the second sort, with N above the standard streams:
   then it is no path to resolve. */
bool mountpoint_is_fd(const char *path);

/* Changes nothing. */
int mountpoint_check(const char *path, struct log *log);

/* *made: it did not exist, and mountpoint_remove() is due. */
int mountpoint_prepare(const char *path, struct log *log, bool *made);

/* Leaves alone what is no empty directory. */
void mountpoint_remove(const char *path);

/* After a mount was refused: logs what to do about it, if that can be told.
   `shared`: it was to be for other users too. */
void mountpoint_explain(bool shared, struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The directory that is mounted on: made if it is missing, freed if a daemon
   died on it. Failures are logged. */
#ifndef FS_MOUNTPOINT_H
#define FS_MOUNTPOINT_H

#include <stdbool.h>

#include "fs/log.h"

/* *made: it did not exist, and mountpoint_remove() is due. */
int mountpoint_prepare(const char *path, struct log *log, bool *made);

/* Leaves alone what is no empty directory. */
void mountpoint_remove(const char *path);

#endif

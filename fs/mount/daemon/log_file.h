/* SPDX-License-Identifier: Apache-2.0 */
/* The file of -o log. The daemon opens it at the start, and the watcher opens
   it again after SIGHUP. */
#ifndef FS_MOUNT_DAEMON_LOG_FILE_H
#define FS_MOUNT_DAEMON_LOG_FILE_H

/*
 * Returns a descriptor for appending, or -errno; -EINVAL: it is a FIFO or the
 * like. Neither this call nor writing blocks. Messages contain names and
 * sampling specs of all datasets, so only the mounting user may read a new
 * file.
 */
int log_file_open(const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The file of -o log. The daemon opens it at the start, and the watcher opens
   it again after SIGHUP. */
#ifndef FS_MOUNT_LOG_FILE_H
#define FS_MOUNT_LOG_FILE_H

/*
 * Returns a descriptor for appending, or -errno; -EINVAL: it is a FIFO or the
 * like. Neither this nor writing blocks. The messages have names and SPECs of
 * all datasets, so a new file is for the mounting user alone.
 */
int log_file_open(const char *path);

#endif

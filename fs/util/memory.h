/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory there is: the machine's, or what the control groups of this
 * process allow, whichever is less. Thread-safe; nothing is kept.
 */
#ifndef FS_UTIL_MEMORY_H
#define FS_UTIL_MEMORY_H

#include <stdint.h>

struct memory {
	uint64_t total;
	/* Can be had without swapping; page cache that nobody uses counts. */
	uint64_t available;
	/* What decided: "MemAvailable of /proc/meminfo", or "cgroup limit 2.0
	   GiB of /sys/fs/cgroup/x". */
	char why[128];
};

/*
 * `root` is the directory that has proc/ and sys/: "" but in tests. Control
 * groups that cannot be read do not count. -ENOENT: no /proc/meminfo.
 */
int memory_read(const char *root, struct memory *out);

#endif

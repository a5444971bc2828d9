/* SPDX-License-Identifier: Apache-2.0 */
/* The available memory: that of the machine, or the limit of this process's
   control groups if that is less. Thread-safe, without state. */
#ifndef FS_BASE_MEMORY_MEMORY_H
#define FS_BASE_MEMORY_MEMORY_H

#include <stdint.h>

struct memory {
	uint64_t total;
	/* Can be allocated without swapping; unused page cache counts. */
	uint64_t available;
	/* The figure that decided: "MemAvailable of /proc/meminfo", or "cgroup
	   limit 2.0 GiB of /sys/fs/cgroup/x". */
	char why[128];
};

/* `root` is the directory that has proc/ and sys/: "" except in tests. Control
   groups that cannot be read are ignored. -ENOENT: no /proc/meminfo. */
int memory_read(const char *root, struct memory *out);

#endif

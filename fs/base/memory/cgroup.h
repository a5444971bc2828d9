/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups of this process, in both versions of Linux's interface.
 * Thread-safe, without state. `root` is the directory that has proc/ and sys/:
 * "" except in tests.
 */
#ifndef FS_BASE_MEMORY_CGROUP_H
#define FS_BASE_MEMORY_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* One of the two versions. */
struct cgroup_hierarchy {
	const char *type;	/* of its file system: "cgroup" or "cgroup2" */
	const char *controller; /* in /proc/self/cgroup and mount options;
				   "" of the second generation */
};

/* Gets the directory of a group, without `root` in front. */
typedef void cgroup_fn(const char *root, const char *dir, void *arg);

/*
 * Calls `fn` for the group of this process and for every mounted group around
 * it, the innermost first. If a container sees its group outside the mounted
 * part, the mount point stands for the group.
 */
void cgroup_each(const char *root, const struct cgroup_hierarchy *h,
		 cgroup_fn *fn, void *arg);

/* Reads a file that holds one number. Returns false for "max". */
bool cgroup_number(const char *root, const char *dir, const char *file,
		   uint64_t *out);

/* Reads the number of a line "NAME NUMBER" or "NAME: NUMBER kB", without
   converting its unit. */
bool cgroup_find(const char *root, const char *dir, const char *file,
		 const char *name, uint64_t *out);

#endif

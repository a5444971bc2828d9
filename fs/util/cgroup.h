/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups that this process is in, of both generations. Thread-safe;
 * nothing is kept. `root` is the directory that has proc/ and sys/: "" but in
 * tests.
 */
#ifndef FS_UTIL_CGROUP_H
#define FS_UTIL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* One of the two generations. */
struct cgroup_hierarchy {
	const char *type;	/* of the file system, "cgroup" or "cgroup2" */
	const char *controller; /* in /proc/self/cgroup and mount options;
				   "" of the second generation */
};

/* Called for a folder below the root. */
typedef void cgroup_fn(const char *root, const char *folder, void *arg);

/*
 * Calls `fn` for the group and all that it is in, as far as they are mounted,
 * from the inside out. A group outside of what is mounted, as a container may
 * see it, has the mount point's files.
 */
void cgroup_each(const char *root, const struct cgroup_hierarchy *h,
		 cgroup_fn *fn, void *arg);

/* The one number of a file; "max" is none. */
bool cgroup_number(const char *root, const char *folder, const char *file,
		   uint64_t *out);

/* The number of a line "NAME NUMBER" or "NAME: NUMBER kB", in its own unit. */
bool cgroup_find(const char *root, const char *folder, const char *file,
		 const char *name, uint64_t *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/memory/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "fs/base/memory/cgroup.h"
#include "fs/base/util/bytes.h"

/* Characters of a group's name that fit into memory.why. */
enum { GROUP_SHOWN = 96 };

/* The two versions of control groups. */
static const struct hierarchy {
	struct cgroup_hierarchy groups;
	const char *limits[2]; /* files; the lower limit counts */
	const char *usage;     /* a file: the bytes in use */
	const char *unused; /* line of memory.stat: page cache that the kernel
			       can drop */
} hierarchies[] = {
	{
		.groups = { "cgroup", "memory" },
		.limits = { "memory.limit_in_bytes" },
		.usage = "memory.usage_in_bytes",
		.unused = "total_inactive_file",
	},
	{
		.groups = { "cgroup2", "" },
		.limits = { "memory.max", "memory.high" },
		.usage = "memory.current",
		.unused = "inactive_file",
	},
};

static bool meminfo(const char *root, const char *name, uint64_t *out)
{
	return cgroup_find(root, "/proc", "meminfo", name, out) &&
	       mul_ok(*out, 1024, out);
}

static int read_meminfo(const char *root, struct memory *m)
{
	uint64_t cached = 0;

	if (!meminfo(root, "MemTotal", &m->total))
		return -ENOENT;
	snprintf(m->why, sizeof(m->why), "MemAvailable of /proc/meminfo");
	if (meminfo(root, "MemAvailable", &m->available))
		return 0;
	/* Kernels before 3.14 have no MemAvailable. */
	snprintf(m->why, sizeof(m->why), "MemFree of /proc/meminfo");
	if (!meminfo(root, "MemFree", &m->available))
		return -ENOENT;
	meminfo(root, "Cached", &cached);
	if (!add_ok(m->available, cached, &m->available))
		return -ENOENT;
	return 0;
}

struct memory_found {
	const struct hierarchy *hierarchy;
	struct memory *memory;
};

static void apply_group(const char *root, const char *dir, void *arg)
{
	const struct memory_found *found = arg;
	const struct hierarchy *h = found->hierarchy;
	struct memory *m = found->memory;
	uint64_t limit = UINT64_MAX, value, usage = 0, unused = 0, left;
	bool large;

	for (size_t i = 0; i < ARRAY_LEN(h->limits) && h->limits[i]; i++) {
		if (cgroup_number(root, dir, h->limits[i], &value))
			limit = min_u64(limit, value);
	}
	if (limit == UINT64_MAX)
		return;
	cgroup_number(root, dir, h->usage, &usage);
	cgroup_find(root, dir, "memory.stat", h->unused, &unused);
	usage -= min_u64(usage, unused);
	left = limit - min_u64(limit, usage);
	m->total = min_u64(m->total, limit);
	if (left >= m->available)
		return;
	m->available = left;
	large = limit >= 1 << 30;
	snprintf(m->why, sizeof(m->why), "cgroup limit %.1f %s of %.*s",
		 (double)limit / (1 << (large ? 30 : 20)),
		 large ? "GiB" : "MiB", GROUP_SHOWN, dir);
}

int memory_read(const char *root, struct memory *out)
{
	struct memory m = { 0 };
	int r = read_meminfo(root, &m);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++) {
		struct memory_found found = { &hierarchies[i], &m };

		cgroup_each(root, &hierarchies[i].groups, apply_group, &found);
	}
	*out = m;
	return 0;
}

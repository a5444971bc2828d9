/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/bytes.h"
#include "fs/scope.h"

/* The most of a group's name that fits into memory.why. */
enum { FOLDER_SHOWN = 96 };

/* The two generations of control groups. */
static const struct hierarchy {
	const char *type;	/* of the file system */
	const char *controller; /* in /proc/self/cgroup and mount options */
	const char *limits[2];	/* files; the least counts */
	const char *usage;	/* a file, of which this line of memory.stat */
	const char *unused;	/* is page cache that can go at once */
} hierarchies[] = {
	{
		.type = "cgroup",
		.controller = "memory",
		.limits = { "memory.limit_in_bytes" },
		.usage = "memory.usage_in_bytes",
		.unused = "total_inactive_file",
	},
	{
		.type = "cgroup2",
		.controller = "",
		.limits = { "memory.max", "memory.high" },
		.usage = "memory.current",
		.unused = "inactive_file",
	},
};

/* A file below the root, or NULL. */
static FILE *open_file(const char *root, const char *folder, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);

	return n < 0 || (size_t)n >= sizeof(path) ? NULL : fopen(path, "re");
}

/* The number of a line "NAME NUMBER" or "NAME: NUMBER kB", in its own unit. */
static bool find_number(const char *root, const char *folder, const char *file,
			const char *name, uint64_t *out)
{
	FILE *f = open_file(root, folder, file);
	unsigned long long value;
	char line[256], word[128];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, "%127[^: ]%*[: ]%llu", word, &value) ==
				2 &&
			!strcmp(word, name);
	}
	if (f)
		fclose(f);
	if (found)
		*out = value;
	return found;
}

/* The one number of a file; "max" is none. */
static bool read_number(const char *root, const char *folder, const char *file,
			uint64_t *out)
{
	FILE *f = open_file(root, folder, file);
	unsigned long long value;
	bool found = f && fscanf(f, "%llu", &value) == 1;

	if (f)
		fclose(f);
	if (found)
		*out = value;
	return found;
}

static bool meminfo(const char *root, const char *name, uint64_t *out)
{
	return find_number(root, "/proc", "meminfo", name, out) &&
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
	/* Kernels before 3.14. */
	snprintf(m->why, sizeof(m->why), "MemFree of /proc/meminfo");
	if (!meminfo(root, "MemFree", &m->available))
		return -ENOENT;
	meminfo(root, "Cached", &cached);
	if (!add_ok(m->available, cached, &m->available))
		return -ENOENT;
	return 0;
}

static void apply_group(const char *root, const struct hierarchy *h,
			const char *folder, struct memory *m)
{
	uint64_t limit = UINT64_MAX, value, usage = 0, unused = 0, left;
	bool large;

	for (size_t i = 0; i < ARRAY_LEN(h->limits) && h->limits[i]; i++) {
		if (read_number(root, folder, h->limits[i], &value))
			limit = min_u64(limit, value);
	}
	if (limit == UINT64_MAX)
		return;
	read_number(root, folder, h->usage, &usage);
	find_number(root, folder, "memory.stat", h->unused, &unused);
	usage -= min_u64(usage, unused);
	left = limit - min_u64(limit, usage);
	m->total = min_u64(m->total, limit);
	if (left >= m->available)
		return;
	m->available = left;
	large = limit >= 1 << 30;
	snprintf(m->why, sizeof(m->why), "cgroup limit %.1f %s of %.*s",
		 (double)limit / (1 << (large ? 30 : 20)),
		 large ? "GiB" : "MiB", FOLDER_SHOWN, folder);
}

/* Whether `word` is one of a list with commas; an empty one is an empty list.
 */
static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	if (!size)
		return !*list;
	for (; list; list = strchr(list, ','), list += list != NULL) {
		if (!strncmp(list, word, size) &&
		    (!list[size] || list[size] == ','))
			return true;
	}
	return false;
}

/* Spaces and the like are written in octal, as \040. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; to++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' &&
		    text[2] && text[3]) {
			*to = (char)((text[1] - '0') << 6 |
				     (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

struct mount {
	char root[PATH_MAX]; /* what of the hierarchy is mounted */
	char point[PATH_MAX];
};

static bool parse_mount(const char *line, const struct hierarchy *h,
			struct mount *out)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[256];

	if (!rest || sscanf(rest, " - %31s %*s %255s", type, options) != 2 ||
	    strcmp(type, h->type) ||
	    (*h->controller && !has_word(options, h->controller)))
		return false;
	_Static_assert(PATH_MAX == 4096, "the widths below");
	if (sscanf(line, "%*s %*s %*s %4095s %4095s", out->root, out->point) !=
	    2)
		return false;
	unescape(out->root);
	unescape(out->point);
	return true;
}

static bool find_mount(const char *root, const struct hierarchy *h,
		       struct mount *out)
{
	FILE *f = open_file(root, "/proc/self", "mountinfo");
	cleanup_free char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (f && !found && getline(&line, &size, f) > 0)
		found = parse_mount(line, h, out);
	if (f)
		fclose(f);
	return found;
}

/*
 * The group and all that it is in, as far as they are mounted. A group outside
 * of what is mounted, as a container may see it, has the mount point's limit.
 */
static void apply_groups(const char *root, const struct hierarchy *h,
			 const char *group, struct memory *m)
{
	struct mount mount;
	char folder[2 * PATH_MAX];
	size_t size, least;

	if (!find_mount(root, h, &mount))
		return;
	size = strcmp(mount.root, "/") ? strlen(mount.root) : 0;
	if (strncmp(group, mount.root, size) || strstr(group, "/.."))
		group = "";
	else
		group += size;
	least = strlen(mount.point);
	snprintf(folder, sizeof(folder), "%s%s", mount.point,
		 strcmp(group, "/") ? group : "");
	for (;;) {
		apply_group(root, h, folder, m);
		if (strlen(folder) <= least)
			break;
		*strrchr(folder, '/') = '\0';
	}
}

/* A line is "NUMBER:CONTROLLERS:GROUP"; the second generation's is "0::". */
static void apply_line(const char *root, char *line, struct memory *m)
{
	char *controllers = strchr(line, ':'), *group;

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return;
	*controllers++ = '\0';
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++) {
		if (has_word(controllers, hierarchies[i].controller))
			apply_groups(root, &hierarchies[i], group, m);
	}
}

int memory_read(const char *root, struct memory *out)
{
	cleanup_free char *line = NULL;
	struct memory m = { 0 };
	size_t size = 0;
	int r = read_meminfo(root, &m);
	FILE *f;

	if (r)
		return r;
	f = open_file(root, "/proc/self", "cgroup");
	while (f && getline(&line, &size, f) > 0)
		apply_line(root, line, &m);
	if (f)
		fclose(f);
	*out = m;
	return 0;
}

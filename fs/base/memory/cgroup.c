/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/memory/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"

/* A file below the root, or NULL. */
static FILE *open_file(const char *root, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s/%s", root, dir, name);

	return n < 0 || (size_t)n >= sizeof(path) ? NULL : fopen(path, "re");
}

bool cgroup_find(const char *root, const char *dir, const char *file,
		 const char *name, uint64_t *out)
{
	FILE *f = open_file(root, dir, file);
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

bool cgroup_number(const char *root, const char *dir, const char *file,
		   uint64_t *out)
{
	FILE *f = open_file(root, dir, file);
	unsigned long long value;
	bool found = f && fscanf(f, "%llu", &value) == 1;

	if (f)
		fclose(f);
	if (found)
		*out = value;
	return found;
}

/* Returns whether a comma-separated list contains `word`. An empty word asks
   whether the list is empty. */
static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	if (!size)
		return !*list;
	while (strncmp(list, word, size) || (list[size] && list[size] != ',')) {
		list = strchr(list, ',');
		if (!list)
			return false;
		list++;
	}
	return true;
}

/* Spaces and similar bytes are written in octal, as \040. */
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
	char root[PATH_MAX]; /* the part of the hierarchy that is mounted */
	char point[PATH_MAX];
};

static bool parse_mount(const char *line, const struct cgroup_hierarchy *h,
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

static bool find_mount(const char *root, const struct cgroup_hierarchy *h,
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

static void each_of_group(const char *root, const struct cgroup_hierarchy *h,
			  const char *group, cgroup_fn *fn, void *arg)
{
	struct mount mount;
	char dir[2 * PATH_MAX];
	size_t size, least;

	if (!find_mount(root, h, &mount))
		return;
	size = strcmp(mount.root, "/") ? strlen(mount.root) : 0;
	if (strncmp(group, mount.root, size) || strstr(group, "/.."))
		group = "";
	else
		group += size;
	least = strlen(mount.point);
	snprintf(dir, sizeof(dir), "%s%s", mount.point,
		 strcmp(group, "/") ? group : "");
	for (;;) {
		fn(root, dir, arg);
		if (strlen(dir) <= least)
			break;
		*strrchr(dir, '/') = '\0';
	}
}

/* Parses a line "NUMBER:CONTROLLERS:GROUP"; version 2 writes "0::GROUP".
   Returns the group if the line is about hierarchy `h`, or NULL. */
static const char *parse_line(char *line, const struct cgroup_hierarchy *h)
{
	char *controllers = strchr(line, ':'), *group;

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return NULL;
	*controllers++ = '\0';
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	return has_word(controllers, h->controller) ? group : NULL;
}

void cgroup_each(const char *root, const struct cgroup_hierarchy *h,
		 cgroup_fn *fn, void *arg)
{
	FILE *f = open_file(root, "/proc/self", "cgroup");
	cleanup_free char *line = NULL;
	const char *group;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		group = parse_line(line, h);
		if (group)
			each_of_group(root, h, group, fn, arg);
	}
	if (f)
		fclose(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

int program_find(const char *name, const char *list, char path[PATH_MAX])
{
	size_t size;
	int n;

	for (; list && *list; list += size + (list[size] == ':')) {
		size = strcspn(list, ":");
		if (*list != '/')
			continue;
		n = snprintf(path, PATH_MAX, "%.*s/%s", (int)size, list, name);
		if (n < PATH_MAX && is_program(path))
			return 0;
	}
	return -ENOENT;
}

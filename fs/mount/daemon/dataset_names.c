/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/dataset_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

/* Returns whether the root of a mount has an entry of this name, or the name
   cannot be a directory. */
static bool is_reserved(const char *name)
{
	return !*name || !strcmp(name, ".") || !strcmp(name, "..") ||
	       !strcmp(name, ".betonfs");
}

static bool is_directory_taken(char (*names)[NAME_DIRECTORY_SIZE], size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (!strcmp(names[j], names[i]))
			return true;
	}
	return is_reserved(names[i]);
}

/* Returns the length of a file name without ".beton". */
static size_t directory_size(const char *file)
{
	static const char suffix[] = ".beton";
	size_t size = strlen(file), cut = sizeof(suffix) - 1;

	return size > cut && !strcmp(file + size - cut, suffix) ? size - cut
								: size;
}

void name_pattern(const char *pattern, char out[NAME_DIRECTORY_SIZE])
{
	static const char special[] = "*?[{", joints[] = "-_.~ \\";
	const char *slash = strrchr(pattern, '/');
	const char *file = slash ? slash + 1 : pattern;
	size_t size = strcspn(file, special);

	if (file[size] || strchr(file, '}')) {
		size = strcspn(pattern, special);
		while (size && strchr(joints, pattern[size - 1]))
			size--;
		file = pattern + size;
		while (file > pattern && file[-1] != '/')
			file--;
		size -= (size_t)(file - pattern);
	}
	if (size)
		snprintf(out, NAME_DIRECTORY_SIZE, "%.*s", (int)size, file);
	else
		snprintf(out, NAME_DIRECTORY_SIZE, "dataset");
}

void name_datasets(const char *const *paths, size_t n,
		   char (*out)[NAME_DIRECTORY_SIZE])
{
	const char *slash, *file;
	size_t size;

	for (size_t i = 0; i < n; i++) {
		slash = strrchr(paths[i], '/');
		file = slash ? slash + 1 : paths[i];
		/* Leaves room for "~" and a number. */
		size = min_u64(directory_size(file), NAME_DIRECTORY_SIZE - 12);
		snprintf(out[i], NAME_DIRECTORY_SIZE, "%.*s", (int)size, file);
		for (unsigned k = 2; is_directory_taken(out, i); k++)
			snprintf(out[i], NAME_DIRECTORY_SIZE, "%.*s~%u",
				 (int)size, file, k);
	}
}

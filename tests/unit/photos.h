/* SPDX-License-Identifier: Apache-2.0 */
/* Real photographs, where there are some: ../shared, or $BETON_SHARED. */
#ifndef TESTS_UNIT_PHOTOS_H
#define TESTS_UNIT_PHOTOS_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/t.h"

enum { PHOTO_MAX = 4 << 20 };

typedef void photo_fn(void *arg, const uint8_t *bytes, size_t size);

static inline void photo_read(const char *path, photo_fn *fn, void *arg)
{
	uint8_t *bytes = malloc(PHOTO_MAX);
	FILE *f = fopen(path, "rb");
	size_t size;

	CHECK(f && bytes);
	size = fread(bytes, 1, PHOTO_MAX, f);
	fclose(f);
	fn(arg, bytes, size);
	free(bytes);
}

/* Calls fn() with one photograph in so many. */
static inline void photos_each(int one_in, photo_fn *fn, void *arg)
{
	const char *shared = getenv("BETON_SHARED");
	char folder[4096], path[4096 + 256];
	struct dirent *entry;
	DIR *dir;
	int n = 0;

	snprintf(folder, sizeof(folder), "%s/data/photos",
		 shared ? shared : "../shared");
	dir = opendir(folder);
	if (!dir) {
		printf("skip: photographs: no %s\n", folder);
		return;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || n++ % one_in)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		photo_read(path, fn, arg);
	}
	closedir(dir);
}

#endif

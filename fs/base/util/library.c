/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct library_search {
	const char *text;
	char *path;
	size_t size;
};

void *library_open(const char *name, bool loaded)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL | (loaded ? RTLD_NOLOAD : 0));
}

void library_close(void *library)
{
	if (library)
		dlclose(library);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct library_search *s = arg;

	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, s->text) ||
	    strlen(info->dlpi_name) >= s->size)
		return 0;
	strcpy(s->path, info->dlpi_name);
	return 1;
}

bool library_find_loaded(const char *text, char *path, size_t size)
{
	struct library_search s = { .text = text, .path = path, .size = size };

	return dl_iterate_phdr(look_at, &s);
}

const char *library_fill(void *library, const struct library_symbol *symbols,
			 size_t n, void *functions)
{
	for (size_t i = 0; i < n; i++) {
		void *function = dlsym(library, symbols[i].name);

		if (!function && symbols[i].required)
			return symbols[i].name;
		memcpy((uint8_t *)functions + symbols[i].offset, &function,
		       sizeof(function));
	}
	return NULL;
}

const char *library_error(void)
{
	const char *text = dlerror();

	return text ? text : "not found";
}

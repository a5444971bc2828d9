/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of defaults: "key=value" lines, written by beton doctor --apply.
 * Loaders and mounts use them for options that the user has not set. This
 * module checks every value; beton-doctor(1) describes them. No state.
 */
#ifndef FS_BASE_SETTINGS_SETTINGS_H
#define FS_BASE_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"

enum setting {
	SETTING_WORKERS,
	SETTING_PREFETCH,
	SETTING_DELIVERY,
	SETTING_CACHE,
	SETTING_CACHE_SIZE,
	SETTING_COLD_SIZE,
	SETTING_ORDER,
	SETTING_BLOCK,
	SETTING_WINDOW,
	SETTING_DECODE,
	SETTING_CACHE_DECODED,
	SETTINGS,
};

enum { SETTING_SIZE = 32 };

/* The text as it was written; numbers and sizes also as a number. */
struct settings {
	struct {
		bool is_set;
		char text[SETTING_SIZE];
		uint64_t number;
	} of[SETTINGS];
};

/* The first bytes of every file of settings. */
#define SETTINGS_HEAD "# betonfs settings"

/*
 * Reads a regular file of at most 64 KiB. -EINVAL: a line is wrong; then no
 * setting of the file is used, and the log names file and line. Failures to
 * read are logged too.
 */
int settings_read(const char *path, struct log *log, struct settings *out);

const char *settings_key(enum setting setting);

/* Appends "key=value" to `out`, after ", " if `out` is not empty. Truncates the
   text to `size`. */
void settings_print(const struct settings *s, enum setting setting, char *out,
		    size_t size);

#endif

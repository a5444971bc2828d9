/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings for what nobody chose: a small file of "key=value" lines, as beton
 * doctor --apply writes them, which loaders and mounts read. Every value is
 * checked here; beton-doctor(1) says what each is. Pure but for reading.
 */
#ifndef FS_ENGINE_SETTINGS_H
#define FS_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/util/log.h"

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

/* Text is as it was written; numbers and sizes are numbers, too. */
struct settings {
	struct {
		bool is_set;
		char text[SETTING_SIZE];
		uint64_t number;
	} of[SETTINGS];
};

/* What every file of settings begins with. */
#define SETTINGS_HEAD "# betonfs settings"

/*
 * Reads a regular file of at most 64 KiB. -EINVAL: a line is wrong, the whole
 * file counts for nothing, and the logged line names file and line. What cannot
 * be read is logged too.
 */
int settings_read(const char *path, struct log *log, struct settings *out);

const char *settings_key(enum setting setting);

/* Adds "key=value", with ", " before it but at first; what does not fit is
   left out. */
void settings_say(const struct settings *s, enum setting setting, char *out,
		  size_t size);

#endif

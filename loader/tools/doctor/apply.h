/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes fixes that are settings to a file that loaders and mounts read, as
 * fs/base/settings/settings.h defines it. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_APPLY_H
#define LOADER_TOOLS_DOCTOR_APPLY_H

#include "fs/base/util/log.h"
#include "loader/tools/doctor/fix.h"

/* The outcome for one fix. */
enum apply_fate {
	APPLY_NONE, /* the fix is not a setting */
	APPLY_WRITTEN,
	APPLY_NO_GAIN,
	APPLY_OTHER, /* a fix with a larger gain sets the same key */
	APPLY_NOT_ALLOWED,
};

struct applied {
	const char *path;
	unsigned allowed; /* FIX_CHANGES_... that the user permits */
	enum apply_fate fates[FIXES_MAX];
};

/* Checks that apply_fixes() may write `path`. -EEXIST, logged: the file exists
   and holds something other than settings. */
int apply_check(const char *path, struct log *log);

/*
 * Writes the settings of the fixes that gain, the largest gain first. Replaces
 * an existing file only if it holds settings. 0 or -errno, logged.
 */
int apply_fixes(const struct fix *fixes, size_t n, const char *path,
		unsigned allowed, struct log *log, struct applied *out);

/* The outcome in words: "written", "not allowed". */
const char *apply_fate_name(enum apply_fate fate);

#endif

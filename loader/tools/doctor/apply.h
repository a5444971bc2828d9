/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixes that are settings, written to a file for loaders and mounts,
 * fs/engine/settings.h. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_APPLY_H
#define LOADER_TOOLS_DOCTOR_APPLY_H

#include "fs/util/log.h"
#include "loader/tools/doctor/fix.h"

/* What became of a fix. */
enum apply_fate {
	APPLY_NONE, /* it is no setting */
	APPLY_WRITTEN,
	APPLY_NO_GAIN,
	APPLY_OTHER, /* a better one sets the same */
	APPLY_NOT_ALLOWED,
};

struct applied {
	const char *path;
	unsigned allowed; /* FIX_CHANGES_..., told to change */
	enum apply_fate fates[FIXES_MAX];
};

/* Whether that could be written to: -EEXIST, logged, if it would be lost. */
int apply_check(const char *path, struct log *log);

/*
 * Writes the settings of what gains, the best first. Of what is there only a
 * file of settings is replaced. Failures are logged.
 */
int apply_fixes(const struct fix *fixes, size_t n, const char *path,
		unsigned allowed, struct log *log, struct applied *out);

/* "written", "not allowed"; what a person is told of it. */
const char *apply_fate_name(enum apply_fate fate);

#endif

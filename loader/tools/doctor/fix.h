/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixes, one row of a table each. A fix changes numbers of the model; its gain
 * is the model's rate with the change, divided by the rate without. Pure
 * functions.
 */
#ifndef LOADER_TOOLS_DOCTOR_FIX_H
#define LOADER_TOOLS_DOCTOR_FIX_H

#include "loader/tools/doctor/evidence.h"
#include "loader/tools/doctor/verdict.h"

enum {
	FIXES_MAX = 24,
	FIX_OPTION_SIZE = 320,
	FIX_WHY_SIZE = 320,
};

/* Smaller gains are within the variation of the runs. */
#define FIX_GAIN_LEAST 1.03

/* Effects of a setting besides speed; bits. */
enum {
	FIX_CHANGES_ORDER = 1,
	FIX_CHANGES_PIXELS = 2,
};

struct fix {
	char option[FIX_OPTION_SIZE]; /* the option, ready to copy */
	char why[FIX_WHY_SIZE];
	const char *cost;
	double gain; /* predicted rate divided by the present rate */
	/* "KEY=VALUE,..." for fs/base/settings/settings.h; "": no setting does it. */
	char setting[96];
	unsigned changes;
};

/* Fills `out` with the fixes that gain, the largest gain first, and with those
   that are always listed. Returns their number. */
size_t fix_list(const struct evidence *e, struct fix *out, size_t max);

#endif

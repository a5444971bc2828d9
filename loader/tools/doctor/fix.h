/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be done: one row of a table each. A fix changes numbers of the
 * model, and its gain is what that does to the model's rate. Pure functions.
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

/* Less than this is within what runs differ by. */
#define FIX_GAIN_LEAST 1.03

/* What a setting changes beside the speed; bits. */
enum {
	FIX_CHANGES_ORDER = 1,
	FIX_CHANGES_PIXELS = 2,
};

struct fix {
	char option[FIX_OPTION_SIZE]; /* exactly what to write */
	char why[FIX_WHY_SIZE];
	const char *cost;
	double gain; /* the rate then, by the rate now */
	/* "KEY=VALUE,..." as in fs/engine/settings.h; "": needs more than that. */
	char setting[96];
	unsigned changes;
};

/* The fixes that gain, the largest first; how many. */
size_t fix_list(const struct evidence *e, struct fix *out, size_t max);

#endif

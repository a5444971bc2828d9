/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says, as a person or a program reads it. */
#ifndef LOADER_TOOLS_DOCTOR_REPORT_H
#define LOADER_TOOLS_DOCTOR_REPORT_H

#include <stdio.h>

#include "loader/tools/doctor/apply.h"
#include "loader/tools/doctor/evidence.h"
#include "loader/tools/doctor/fix.h"
#include "loader/tools/doctor/verdict.h"

struct diagnosis {
	const struct evidence *evidence;
	struct verdict verdict;
	struct fix fixes[FIXES_MAX];
	size_t num_fixes;
	const struct applied *applied; /* NULL: that was not asked for */
};

/* A line of the picture of where time goes. */
struct stage_share {
	const char *name;
	double us; /* CPU time of a sample */
	double share;
};

enum { SHARES_MAX = 3 };

void report_diagnose(const struct evidence *e, struct diagnosis *out);
size_t report_shares(const struct evidence *e, struct stage_share *out);
/* "order,pixels", of FIX_CHANGES_... */
const char *report_changes(unsigned changes);
/* "no upload", what a rung of the ladder is. */
const char *report_rung(enum rung rung);
/* What a term of the model is about. */
const char *report_term(enum term term);

void report_text(const struct diagnosis *d, FILE *out);
void report_json(const struct diagnosis *d, FILE *out);
/* 0 or -errno. */
int report_html(const struct diagnosis *d, const char *path, struct log *log);

#endif

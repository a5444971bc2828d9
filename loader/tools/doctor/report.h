/* SPDX-License-Identifier: Apache-2.0 */
/* The report of the doctor as text, as JSON and as a page. */
#ifndef LOADER_TOOLS_DOCTOR_REPORT_H
#define LOADER_TOOLS_DOCTOR_REPORT_H

#include <stdio.h>

#include "loader/tools/doctor/facts.h"

enum { SHARES_MAX = 3 };

void report_diagnose(const struct evidence *e, struct diagnosis *out);
size_t report_shares(const struct evidence *e, struct stage_share *out);
/* FIX_CHANGES_... in words: "order,pixels". */
const char *report_changes(unsigned changes);
/* Return the name of a rung of the ladder, such as "no upload", and its key in
   JSON. */
const char *report_rung(enum rung rung);
const char *report_rung_key(enum rung rung);
/* Returns the name of a term of the model, such as "disk". */
const char *report_term(enum term term);

void report_text(const struct diagnosis *d, FILE *out);
void report_json(const struct diagnosis *d, FILE *out);
/* 0 or -errno. */
int report_html(const struct diagnosis *d, const char *path, struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which bottleneck it is: one row of a table each. Pure functions. */
#ifndef LOADER_TOOLS_DOCTOR_VERDICT_H
#define LOADER_TOOLS_DOCTOR_VERDICT_H

#include "loader/tools/doctor/evidence.h"

enum { VERDICT_TEXT_SIZE = 512 };

struct verdict {
	const char *name;  /* "cpu decode" */
	const char *cause; /* what is behind it, "quota"; "": just that */
	double score;	   /* 0 to 1 */
	char text[VERDICT_TEXT_SIZE]; /* a sentence with the numbers */
};

/* The bottleneck with the highest score. */
void verdict_find(const struct evidence *e, struct verdict *out);

/* Whether scaling over ranks is lost in data, and which rank is the slowest; ""
   if there are not several. */
void verdict_ranks(const struct evidence *e, char *out, size_t size);

/* The score of row `i`, for the curious; NULL past the end. */
const char *verdict_row(const struct evidence *e, size_t i, double *score);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Bottlenecks, one row of a table each. Pure functions. */
#ifndef LOADER_TOOLS_DOCTOR_VERDICT_H
#define LOADER_TOOLS_DOCTOR_VERDICT_H

#include "loader/tools/doctor/evidence.h"

enum { VERDICT_TEXT_SIZE = 512 };

struct verdict {
	const char *name;  /* "cpu decode" */
	const char *cause; /* the reason behind it, such as "quota"; "": none */
	double score;	   /* 0 to 1 */
	char text[VERDICT_TEXT_SIZE]; /* a sentence with numbers */
};

/* The bottleneck with the highest score. */
void verdict_find(const struct evidence *e, struct verdict *out);

/* A sentence on whether scaling over ranks is lost in data, and on the slowest
   rank. "" if there are fewer than two ranks. */
void verdict_ranks(const struct evidence *e, char *out, size_t size);

/* The name of row `i`, and in *score its score. NULL past the end. */
const char *verdict_row(const struct evidence *e, size_t i, double *score);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a survey as pictures, in HTML. */
#ifndef LOADER_TOOLS_GALLERY_CHART_H
#define LOADER_TOOLS_GALLERY_CHART_H

#include <stdio.h>

#include "loader/tools/gallery/census.h"
#include "loader/tools/gallery/survey.h"

enum chart_unit {
	CHART_BYTES,
	CHART_PIXELS,
	CHART_WHOLE, /* numbers */
	CHART_REAL,
};

enum { CHART_NUMBER_SIZE = 48 };

/* With its unit: "84.2 kB", "375 px", "-1,300", "0.125". */
const char *chart_number(enum chart_unit unit, double x,
			 char text[CHART_NUMBER_SIZE]);
const char *chart_integer(int64_t x, char text[CHART_NUMBER_SIZE]);

/* A card: a histogram, or a line if all are the same; median and range. */
void chart_series(FILE *out, const char *title, enum chart_unit unit,
		  const struct series *series);

/* A card: how often values occur, from the most frequent to the rarest; nothing
   where chart_classes() has a bar for each. */
void chart_frequencies(FILE *out, const struct census_count *counts, size_t n);

/* Bars of how often values occur: of each, or of those that most often do. */
void chart_classes(FILE *out, const char *title,
		   const struct census_count *counts, size_t n);

#endif

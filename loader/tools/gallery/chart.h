/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of a survey's numbers, in HTML. */
#ifndef LOADER_TOOLS_GALLERY_CHART_H
#define LOADER_TOOLS_GALLERY_CHART_H

#include <stdio.h>

#include "loader/tools/gallery/census.h"
#include "loader/tools/gallery/survey.h"

enum chart_unit {
	CHART_BYTES,
	CHART_PIXELS,
	CHART_WHOLE, /* integers */
	CHART_REAL,
};

enum { CHART_NUMBER_SIZE = 48 };

/* A number with its unit: "84.2 kB", "375 px", "-1,300", "0.125". */
const char *chart_number(enum chart_unit unit, double x,
			 char text[CHART_NUMBER_SIZE]);
const char *chart_integer(int64_t x, char text[CHART_NUMBER_SIZE]);

/* A value of an integer field, and the name of its class if it has one: "207
   golden_retriever". A long name is cut. */
const char *chart_class(const struct field *field, int64_t value,
			char text[CHART_NUMBER_SIZE]);

/* A card with a histogram, the median and the range. If all values are equal,
   writes a line instead. */
void chart_series(FILE *out, const char *title, enum chart_unit unit,
		  const struct series *series);

/* A card with the frequencies of values, from the most frequent to the rarest.
   Writes nothing if chart_classes() draws a bar for each value. */
void chart_frequencies(FILE *out, const struct census_count *counts, size_t n);

/* Bars with the frequencies of all values or, if there are many, of the most
   frequent ones. */
void chart_classes(FILE *out, const char *title, const struct field *field,
		   const struct census_count *counts, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The section of a gallery's page about one field. */
#ifndef LOADER_TOOLS_GALLERY_FIELD_H
#define LOADER_TOOLS_GALLERY_FIELD_H

#include <stdio.h>

#include "loader/tools/gallery/survey.h"
#include "loader/tools/gallery/thumbnail.h"

enum {
	GALLERY_TEXT_SIZE = 320, /* bytes of a snippet, at most */
	GALLERY_WHY_SIZE = 200,
};

/* An image on the page. */
struct shot {
	uint64_t sample;
	struct value value;
	struct thumbnail thumbnail;
	bool has_label;
	int64_t label;
	char why[GALLERY_WHY_SIZE]; /* the reason if it cannot be shown; else ""
				     */
};

/* The start of a value of JSON or bytes. */
struct snippet {
	uint64_t sample;
	uint64_t size; /* of the whole value */
	size_t n;
	uint8_t bytes[GALLERY_TEXT_SIZE];
	char why[GALLERY_WHY_SIZE]; /* the reason if it cannot be shown; else ""
				     */
};

/* Sample values of a field that the page shows. */
struct exhibit {
	struct shot *shots;
	size_t num_shots;
	size_t failed; /* shots that cannot be shown */
	struct snippet *snippets;
	size_t num_snippets;
};

/* Writes the kind, type and shape of a field: "arrays, <f4 (2, 3)". */
void gallery_field_holds(FILE *out, const struct field *f);

/* Writes the section of a field. Types without one are skipped. */
void gallery_field_write(FILE *out, const struct survey *s,
			 const struct survey_field *f, const struct exhibit *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a gallery's page that is about one field. */
#ifndef LOADER_TOOLS_GALLERY_FIELD_H
#define LOADER_TOOLS_GALLERY_FIELD_H

#include <stdio.h>

#include "loader/tools/gallery/survey.h"
#include "loader/tools/gallery/thumbnail.h"

enum {
	GALLERY_TEXT_SIZE = 320, /* bytes that are shown of a snippet */
	GALLERY_WHY_SIZE = 200,
};

/* An image of the gallery. */
struct shot {
	uint64_t sample;
	struct value value;
	struct thumbnail thumbnail;
	bool has_label;
	int64_t label;
	char why[GALLERY_WHY_SIZE]; /* why it cannot be shown, or "" */
};

/* How a value of JSON or bytes begins. */
struct snippet {
	uint64_t sample;
	uint64_t size; /* of all of it */
	size_t n;
	uint8_t bytes[GALLERY_TEXT_SIZE];
	char why[GALLERY_WHY_SIZE]; /* why it cannot be shown, or "" */
};

/* The values of a field that the page shows, besides its numbers. */
struct exhibit {
	struct shot *shots;
	size_t num_shots;
	size_t failed; /* shots that cannot be shown */
	struct snippet *snippets;
	size_t num_snippets;
};

/* "arrays, <f4 (2, 3)" */
void gallery_field_holds(FILE *out, const struct field *f);

/* Nothing where the line above says all. */
void gallery_field_write(FILE *out, const struct survey *s,
			 const struct survey_field *f, const struct exhibit *e);

#endif

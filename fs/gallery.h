/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset as a page to look at: what it holds, as numbers and as pictures.
 * Everything in the dataset is hostile; what is damaged is told and counted in
 * the page, and is no failure. Memory is that of the images shown, once small,
 * and one as it is stored.
 */
#ifndef FS_GALLERY_H
#define FS_GALLERY_H

#include "fs/gallery_survey.h"
#include "fs/gallery_thumbnail.h"

enum {
	GALLERY_IMAGES_MAX = 2000,
	GALLERY_TEXTS = 6,	 /* of each field of JSON or bytes */
	GALLERY_TEXT_SIZE = 320, /* bytes that are shown of one */
	GALLERY_WHY_SIZE = 200,
};

/* An image of the gallery. */
struct shot {
	uint64_t sample;
	struct value value;
	struct thumbnail thumbnail;
	bool has_label;
	int64_t label;
	char why[GALLERY_WHY_SIZE]; /* it cannot be shown; "": it can */
};

/* How a value of JSON or bytes begins. */
struct snippet {
	uint64_t sample;
	uint64_t size; /* of all of it */
	size_t n;
	uint8_t bytes[GALLERY_TEXT_SIZE];
	char why[GALLERY_WHY_SIZE];
};

/* What is shown of a field, beside its numbers. */
struct exhibit {
	struct shot *shots;
	size_t num_shots;
	size_t failed; /* of these */
	struct snippet *snippets;
	size_t num_snippets;
};

struct gallery {
	const struct survey *survey;
	struct exhibit *exhibits; /* one for each field of the survey */
};

/*
 * Writes the page to `path`, NULL: standard output, with so many images at
 * most, of all fields together. 0 or -errno, logged.
 */
int gallery_save(struct dataset *ds, const char *path, uint64_t images,
		 struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a gallery: a function of what it is given and of nothing else,
   the same for the same dataset. */
#ifndef LOADER_TOOLS_GALLERY_PAGE_H
#define LOADER_TOOLS_GALLERY_PAGE_H

#include <stdio.h>

#include "loader/tools/gallery/field.h"

/* Everything that the page shows. */
struct gallery {
	const struct survey *survey;
	struct exhibit *exhibits; /* one for each field of the survey */
};

void gallery_page_write(FILE *out, const struct gallery *g);

#endif

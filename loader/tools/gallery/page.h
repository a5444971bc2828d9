/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a gallery. It depends on the arguments only, so a dataset gives
   the same page each time. */
#ifndef LOADER_TOOLS_GALLERY_PAGE_H
#define LOADER_TOOLS_GALLERY_PAGE_H

#include <stdio.h>

#include "loader/tools/gallery/field.h"

/* The content of the page. */
struct gallery {
	const struct survey *survey;
	struct exhibit *exhibits; /* one per field of the survey */
};

void gallery_page_write(FILE *out, const struct gallery *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a gallery: a function of what it is given and of nothing else,
   the same for the same dataset. */
#ifndef FS_GALLERY_PAGE_H
#define FS_GALLERY_PAGE_H

#include <stdio.h>

#include "fs/gallery.h"

void gallery_page_write(FILE *out, const struct gallery *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset as a page to look at: what it holds, as numbers and as pictures.
 * Everything in the dataset is hostile; what is damaged is told and counted in
 * the page, and is no failure. Memory is that of the images shown, once small,
 * and one as it is stored.
 */
#ifndef LOADER_TOOLS_GALLERY_GALLERY_H
#define LOADER_TOOLS_GALLERY_GALLERY_H

#include <stdint.h>

#include "fs/dataset/dataset.h"
#include "fs/util/log.h"

enum {
	GALLERY_IMAGES_MAX = 2000,
	GALLERY_TEXTS = 6, /* of each field of JSON or bytes */
};

/*
 * Writes the page to `path`, NULL: standard output, with so many images at
 * most, of all fields together. 0 or -errno, logged.
 */
int gallery_save(struct dataset *ds, const char *path, uint64_t images,
		 struct log *log);

#endif

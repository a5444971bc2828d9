/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset as an HTML page: numbers, charts and sample images. The dataset is
 * untrusted. Damage is not a failure: the page counts and describes it. Memory
 * holds all thumbnails of the page and one stored image.
 */
#ifndef LOADER_TOOLS_GALLERY_GALLERY_H
#define LOADER_TOOLS_GALLERY_GALLERY_H

#include <stdint.h>

#include "fs/dataset/dataset.h"
#include "fs/util/log.h"

enum {
	GALLERY_IMAGES_MAX = 2000,
	GALLERY_TEXTS = 6, /* snippets per field of JSON or bytes */
};

/*
 * Writes the page to `path`, or to standard output if it is NULL, with at most
 * `images` images over all fields. 0 or -errno, logged.
 */
int gallery_save(struct dataset *ds, const char *path, uint64_t images,
		 struct log *log);

#endif

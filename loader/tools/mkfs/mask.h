/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mask of an image: a PNG in another directory, at the image's place and of
 * its name, which is stored as it is.
 */
#ifndef LOADER_TOOLS_MKFS_MASK_H
#define LOADER_TOOLS_MKFS_MASK_H

#include <stddef.h>

#include "loader/tools/mkfs/encode.h"

struct mask {
	char *bytes; /* the caller frees them */
	size_t size;
};

/*
 * Reads the mask of the image `rel`, a path below its source, as large as
 * `image` was stored. If that fails, the image is refused: its status and
 * reason are set.
 */
void mask_read(const char *dir, const char *rel, struct encoded *image,
	       struct mask *out);

#endif

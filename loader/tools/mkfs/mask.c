/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/codec/png.h"
#include "loader/util/read_file.h"

enum { FILE_MAX = 1 << 28 };

static void refuse(struct encoded *image, int status, const char *path,
		   const char *why)
{
	image->status = status;
	snprintf(image->why, sizeof(image->why), "mask %.60s: %s", path, why);
}

static void check(const char *path, const struct mask *mask,
		  struct encoded *image)
{
	struct png_size size;
	char why[80];

	if (png_measure((const uint8_t *)mask->bytes, mask->size, &size)) {
		refuse(image, -EBADMSG, path, "not a PNG");
		return;
	}
	if (size.width == image->width && size.height == image->height)
		return;
	snprintf(why, sizeof(why), "%ux%u, but the image is stored as %ux%u",
		 size.width, size.height, image->width, image->height);
	refuse(image, -EINVAL, path, why);
}

void mask_read(const char *dir, const char *rel, struct encoded *image,
	       struct mask *out)
{
	const char *dot = strrchr(rel, '.');
	int length = (int)(dot ? dot - rel : (ptrdiff_t)strlen(rel));
	char *path;
	int r;

	*out = (struct mask){ NULL, 0 };
	if (asprintf(&path, "%s/%.*s.png", dir, length, rel) < 0) {
		refuse(image, -ENOMEM, rel, strerror(ENOMEM));
		return;
	}
	r = read_file(path, FILE_MAX, &out->bytes, &out->size);
	if (r)
		refuse(image, r, path, strerror(-r));
	else
		check(path, out, image);
	free(path);
}

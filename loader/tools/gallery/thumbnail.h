/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thumbnails of images. They are decoded as a loader decodes them, if possible
 * at a reduced size, and encoded again, so nothing but pixels leaves the
 * dataset. Memory is bounded by the size of the image. One thread.
 */
#ifndef LOADER_TOOLS_GALLERY_THUMBNAIL_H
#define LOADER_TOOLS_GALLERY_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/pipeline/pipeline.h"

/* Pixels of the longer side. Pages show thumbnails at two thirds of it, because
   many screens have two pixels per CSS pixel. */
enum { THUMBNAIL_SIDE = 208 };

struct thumbnail {
	uint8_t *jpeg; /* the caller frees it */
	size_t size;
	uint32_t width;
	uint32_t height;
};

struct thumbnailer;

int thumbnailer_open(struct thumbnailer **out);
void thumbnailer_close(struct thumbnailer *t);

/* -EINVAL, -EBADMSG: the image's fault; -ENOMEM. */
int thumbnail_make(struct thumbnailer *t, const struct pipeline_value *value,
		   struct thumbnail *out);

/* Returns why the last call failed. Valid until the next call. */
const char *thumbnailer_message(const struct thumbnailer *t);

#endif

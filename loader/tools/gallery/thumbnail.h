/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small JPEGs of images: decoded as a loader decodes them, at a reduced size
 * where that will do, and coded anew, so that nothing of what the dataset holds
 * but pixels comes out. Memory is bounded by the image's own size. One
 * thread's.
 */
#ifndef LOADER_TOOLS_GALLERY_THUMBNAIL_H
#define LOADER_TOOLS_GALLERY_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/pipeline/pipeline.h"

/* The longer side; pages show them at two thirds of that, screens often have
   two pixels for one. */
enum { THUMBNAIL_SIDE = 208 };

struct thumbnail {
	uint8_t *jpeg; /* malloc'ed */
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

/* Why the last call failed; valid until the next. */
const char *thumbnailer_message(const struct thumbnailer *t);

#endif

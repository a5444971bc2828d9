/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes and resizes single images in memory, by the code that loaders use.
 * Pixels are rows of red, green, blue, 8 bits each, without gaps. The
 * conventions of <beton/beton.h> hold.
 *
 * Threads: the functions may be called from any thread.
 */
#ifndef BETON_IMAGE_H
#define BETON_IMAGE_H

#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels [x, x + width) of rows [y, y + height). */
struct beton_image_part {
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

/* An image in memory. */
struct beton_image {
	void *pixels;
	uint32_t width;
	uint32_t height;
};

/* Reads width and height out of a JPEG's header. -EBADMSG: not a JPEG that can
   be decoded. */
BETON_API int beton_image_size(const void *jpeg, uint64_t size, uint32_t *width,
			       uint32_t *height);

/* Decodes a part of a JPEG to out->pixels. `out` has the size of the part.
   -EBADMSG: not a JPEG that can be decoded, or damaged. -ERANGE: the part is
   not inside. -EINVAL: the sizes differ. */
BETON_API int beton_image_decode(const void *jpeg, uint64_t size,
				 const struct beton_image_part *part,
				 const struct beton_image *out);

/* Resizes a part of an image to all of `out`, by the area that each pixel
   covers. They may not overlap. -ERANGE: the part is not inside. -EINVAL: a
   size is 0. */
BETON_API int beton_image_resize(const struct beton_image *in,
				 const struct beton_image_part *part,
				 const struct beton_image *out);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes and resizes single images in memory, with the code of the loader.
 *
 * These functions need no dataset: they read a JPEG from memory, and write
 * pixels into memory of the caller. The pixels are those of a training that
 * loads this image. The conventions of <beton/beton.h> hold. Pixels are rows of red, green and
 * blue, 8 bits each, without gaps. A program that decodes the middle of a JPEG:
 *
 *	#include <beton/image.h>
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *	#include <string.h>
 *
 *	enum { MAX = 1 << 24 };
 *
 *	int main(int argc, char **argv)
 *	{
 *		FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
 *		unsigned char *jpeg = malloc(MAX);
 *		struct beton_image_part part = { 0 };
 *		struct beton_image out = { 0 };
 *		size_t size;
 *		int r;
 *
 *		if (!file || !jpeg) {
 *			perror(argc == 2 ? argv[1] : "usage: FILE");
 *			free(jpeg);
 *			return 1;
 *		}
 *		size = fread(jpeg, 1, MAX, file);
 *		fclose(file);
 *		r = beton_image_size(jpeg, size, &out.width, &out.height);
 *		if (!r) {
 *			part.x = out.width / 4;
 *			part.y = out.height / 4;
 *			part.width = out.width = (out.width + 1) / 2;
 *			part.height = out.height = (out.height + 1) / 2;
 *			out.pixels = malloc(3 * (size_t)out.width * out.height);
 *			r = out.pixels ? 0 : -ENOMEM;
 *		}
 *		if (!r)
 *			r = beton_image_decode(jpeg, size, &part, &out);
 *		if (r)
 *			fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
 *		else
 *			printf("%u x %u pixels\n", out.width, out.height);
 *		free(out.pixels);
 *		free(jpeg);
 *		return r != 0;
 *	}
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

/*
 * Reads width and height from the header of a JPEG. Call it first, because
 * beton_image_decode() needs memory for the pixels.
 *
 *   jpeg            `size` bytes
 *   width, height   receive the numbers of pixels
 *
 * Returns 0, or
 *   -EBADMSG   not a JPEG that can be decoded
 */
BETON_API int beton_image_size(const void *jpeg, uint64_t size, uint32_t *width,
			       uint32_t *height);

/*
 * Decodes a part of a JPEG.
 *
 *   jpeg   `size` bytes
 *   part   the pixels to decode
 *   out    has the width and height of the part, and room for its pixels
 *
 * If you need the whole image, set x and y of the part to 0.
 *
 * Returns 0, or
 *   -EBADMSG   not a JPEG that can be decoded, or damaged
 *   -ERANGE    the part is not inside the image
 *   -EINVAL    the sizes of part and out differ
 */
BETON_API int beton_image_decode(const void *jpeg, uint64_t size,
				 const struct beton_image_part *part,
				 const struct beton_image *out);

/*
 * Resizes a part of an image, by the area that each pixel covers.
 *
 *   in     the image
 *   part   the pixels to resize
 *   out    set its size; receives the pixels. Its memory must not overlap that
 *          of `in`, because the call reads `in` while it writes `out`.
 *
 * Returns 0, or
 *   -ERANGE   the part is not inside the image
 *   -EINVAL   a size is 0
 */
BETON_API int beton_image_resize(const struct beton_image *in,
				 const struct beton_image_part *part,
				 const struct beton_image *out);

#ifdef __cplusplus
}
#endif

#endif

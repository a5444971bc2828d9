/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that betonfs.ffcv.libffcv finds by name in the extension. The
 * caller owns all memory. Images are rows of red, green and blue, without gaps.
 */
#ifndef PYTHON_FFCV_H
#define PYTHON_FFCV_H

#include <stdbool.h>
#include <stdint.h>

#define FOR_CTYPES __attribute__((visibility("default")))

/* Decodes a JPEG of this size in pixels, or the part `crop` of it, scaled to
   num/denom and rounded up. Returns -EINVAL if the JPEG has another size. */
FOR_CTYPES int beton_ffcv_imdecode(const void *jpeg, uint64_t size,
				   uint32_t height, uint32_t width,
				   void *pixels, uint32_t crop_height,
				   uint32_t crop_width, uint32_t x, uint32_t y,
				   uint32_t num, uint32_t denom, bool crop,
				   bool flip);

/* Resizes a part of an image to another image. Returns -ERANGE if the part is
   not inside the image. */
FOR_CTYPES int beton_ffcv_resize(int64_t unused, int64_t source, int64_t height,
				 int64_t width, int64_t start_row,
				 int64_t end_row, int64_t start_column,
				 int64_t end_column, int64_t out,
				 int64_t out_height, int64_t out_width);

/* Copies a part of an image to the top left of another image, and blackens the
   rest. Returns -ERANGE if the part is not inside the image. */
FOR_CTYPES int beton_ffcv_pad(int64_t unused, int64_t source, int64_t height,
			      int64_t width, int64_t start_row, int64_t end_row,
			      int64_t start_column, int64_t end_column,
			      int64_t out, int64_t out_height,
			      int64_t out_width);

FOR_CTYPES void beton_ffcv_memcpy(const void *source, void *to, uint64_t size);

#endif

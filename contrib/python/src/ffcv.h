/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that betonfs.ffcv.libffcv looks up in the extension by name. The
 * caller owns all memory; images are rows of red, green, blue without gaps.
 */
#ifndef PYTHON_FFCV_H
#define PYTHON_FFCV_H

#include <stdbool.h>
#include <stdint.h>

#define FOR_CTYPES __attribute__((visibility("default")))

/* Decodes a JPEG of this size, or with `crop` a part of it, to num/denom of
   its size, rounded up. -EINVAL: the JPEG is of another size. */
FOR_CTYPES int beton_ffcv_imdecode(const void *jpeg, uint64_t size,
				   uint32_t height, uint32_t width,
				   void *pixels, uint32_t crop_height,
				   uint32_t crop_width, uint32_t x, uint32_t y,
				   uint32_t num, uint32_t denom, bool crop,
				   bool flip);

/* Resizes a part of an image to all of another one. -ERANGE: not inside. */
FOR_CTYPES int beton_ffcv_resize(int64_t unused, int64_t source, int64_t height,
				 int64_t width, int64_t start_row,
				 int64_t end_row, int64_t start_column,
				 int64_t end_column, int64_t out,
				 int64_t out_height, int64_t out_width);

/* Copies a part of an image to the top left of another one, and makes the rest
   of that one black. -ERANGE: not inside. */
FOR_CTYPES int beton_ffcv_pad(int64_t unused, int64_t source, int64_t height,
			      int64_t width, int64_t start_row, int64_t end_row,
			      int64_t start_column, int64_t end_column,
			      int64_t out, int64_t out_height,
			      int64_t out_width);

FOR_CTYPES void beton_ffcv_memcpy(const void *source, void *to, uint64_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of plain numbers and addresses for betonfs.ffcv.libffcv, which
   compiled code calls without Python. They take FFCV's arguments and return 0
   or -errno. */
#include "ffcv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "beton/image.h"

enum { SIDE_MAX = 65535, PIXEL = 3 };

static void flip_rows(const struct beton_image *image)
{
	const size_t last = PIXEL * ((size_t)image->width - 1);
	uint8_t *row = image->pixels, pixel[PIXEL];

	for (uint32_t y = 0; y < image->height; y++, row += last + PIXEL)
		for (size_t a = 0, b = last; a < b; a += PIXEL, b -= PIXEL) {
			memcpy(pixel, row + a, PIXEL);
			memcpy(row + a, row + b, PIXEL);
			memcpy(row + b, pixel, PIXEL);
		}
}

/* Decodes a part of an image in full size, then shrinks it. */
static int decode_scaled(const void *jpeg, uint64_t size,
			 const struct beton_image_part *part,
			 const struct beton_image *out)
{
	const struct beton_image_part all = { 0, 0, part->width, part->height };
	struct beton_image whole = { NULL, part->width, part->height };
	int r;

	whole.pixels = malloc(PIXEL * (size_t)part->width * part->height);
	if (!whole.pixels)
		return -ENOMEM;
	r = beton_image_decode(jpeg, size, part, &whole);
	if (!r)
		r = beton_image_resize(&whole, &all, out);
	free(whole.pixels);
	return r;
}

static uint32_t scaled(uint32_t side, uint32_t num, uint32_t denom)
{
	return (uint32_t)(((uint64_t)side * num + denom - 1) / denom);
}

int beton_ffcv_imdecode(const void *jpeg, uint64_t size, uint32_t height,
			uint32_t width, void *pixels, uint32_t crop_height,
			uint32_t crop_width, uint32_t x, uint32_t y,
			uint32_t num, uint32_t denom, bool crop, bool flip)
{
	const struct beton_image_part part = {
		crop ? x : 0,
		crop ? y : 0,
		crop ? crop_width : width,
		crop ? crop_height : height,
	};
	struct beton_image out = { .pixels = pixels };
	uint32_t real_width, real_height;
	int r = beton_image_size(jpeg, size, &real_width, &real_height);

	if (r)
		return r;
	if (!num || !denom || num > denom || real_width != width ||
	    real_height != height)
		return -EINVAL;
	out.width = scaled(part.width, num, denom);
	out.height = scaled(part.height, num, denom);
	r = num == denom ? beton_image_decode(jpeg, size, &part, &out)
			 : decode_scaled(jpeg, size, &part, &out);
	if (!r && flip && out.width)
		flip_rows(&out);
	return r;
}

/* Sets the part of an image between rows and columns. Returns -ERANGE if it is
   not inside the image. */
static int part_of(struct beton_image_part *part, const int64_t at[4],
		   int64_t height, int64_t width)
{
	if (height > SIDE_MAX || width > SIDE_MAX || at[0] < 0 || at[2] < 0 ||
	    at[1] <= at[0] || at[3] <= at[2] || at[1] > height || at[3] > width)
		return -ERANGE;
	part->x = (uint32_t)at[2];
	part->y = (uint32_t)at[0];
	part->width = (uint32_t)(at[3] - at[2]);
	part->height = (uint32_t)(at[1] - at[0]);
	return 0;
}

int beton_ffcv_resize(int64_t unused, int64_t source, int64_t height,
		      int64_t width, int64_t start_row, int64_t end_row,
		      int64_t start_column, int64_t end_column, int64_t out,
		      int64_t out_height, int64_t out_width)
{
	const int64_t at[] = { start_row, end_row, start_column, end_column };
	const struct beton_image from = { (void *)(uintptr_t)source,
					  (uint32_t)width, (uint32_t)height };
	const struct beton_image to = { (void *)(uintptr_t)out,
					(uint32_t)out_width,
					(uint32_t)out_height };
	struct beton_image_part part;
	int r = part_of(&part, at, height, width);

	(void)unused;
	if (!r && (out_height <= 0 || out_width <= 0 || out_height > SIDE_MAX ||
		   out_width > SIDE_MAX))
		r = -ERANGE;
	return r ? r : beton_image_resize(&from, &part, &to);
}

int beton_ffcv_pad(int64_t unused, int64_t source, int64_t height,
		   int64_t width, int64_t start_row, int64_t end_row,
		   int64_t start_column, int64_t end_column, int64_t out,
		   int64_t out_height, int64_t out_width)
{
	const int64_t at[] = { start_row, end_row, start_column, end_column };
	const uint8_t *from = (const uint8_t *)(uintptr_t)source;
	uint8_t *to = (uint8_t *)(uintptr_t)out;
	struct beton_image_part part;
	size_t row;

	(void)unused;
	if (part_of(&part, at, height, width) || part.height > out_height ||
	    part.width > out_width)
		return -ERANGE;
	memset(to, 0, PIXEL * (size_t)out_height * (size_t)out_width);
	from += PIXEL * ((size_t)part.y * (size_t)width + part.x);
	row = PIXEL * (size_t)part.width;
	for (uint32_t y = 0; y < part.height; y++) {
		memcpy(to, from, row);
		to += PIXEL * (size_t)out_width;
		from += PIXEL * (size_t)width;
	}
	return 0;
}

void beton_ffcv_memcpy(const void *source, void *to, uint64_t size)
{
	memcpy(to, source, size);
}

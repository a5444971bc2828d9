/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/png.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/util/gray.h"

/* The source that libpng reads from, and where its errors go. */
struct png_reader {
	const uint8_t *bytes;
	size_t size;
	char *why;
	struct scratch row; /* of up to four samples of 16 bits for a pixel */
	const struct png_form *form;
};

enum { SIGNATURE = 8, HEADER = 24, SAMPLES_MAX = 4 };

bool png_is(const uint8_t *bytes, size_t size)
{
	return size >= HEADER &&
	       !png_sig_cmp((png_const_bytep)bytes, 0, SIGNATURE);
}

static uint32_t big32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

int png_measure(const uint8_t *bytes, size_t size, struct png_size *out)
{
	struct png_size s;

	if (!png_is(bytes, size))
		return -EBADMSG;
	s.width = big32(bytes + 16);
	s.height = big32(bytes + 20);
	if (!s.width || !s.height || s.width > PNG_SIDE_MAX ||
	    s.height > PNG_SIDE_MAX)
		return -EBADMSG;
	*out = s;
	return 0;
}

static void on_error(png_structp png, png_const_charp message)
{
	struct png_reader *r = png_get_error_ptr(png);

	snprintf(r->why, PNG_WHY_SIZE, "PNG: %s", message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void on_read(png_structp png, png_bytep out, size_t size)
{
	struct png_reader *r = png_get_io_ptr(png);

	if (size > r->size)
		png_error(png, "the value ends too early");
	memcpy(out, r->bytes, size);
	r->bytes += size;
	r->size -= size;
}

/* Asks libpng for gray or RGB without alpha, or for classes. */
static void ask_for(png_structp png, png_infop info,
		    const struct png_form *form)
{
	png_byte color = png_get_color_type(png, info);

	if (form->classes)
		png_set_packing(png);
	else if (color == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	else if (!(color & PNG_COLOR_MASK_COLOR))
		png_set_expand_gray_1_2_4_to_8(png);
	if (!form->classes && form->channels == 3)
		png_set_gray_to_rgb(png);
	png_set_strip_alpha(png);
	if (form->bytes == 2 && !form->classes)
		png_set_expand_16(png);
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		png_set_swap(png);
}

static unsigned sample_at(const uint8_t *row, unsigned bytes, size_t i)
{
	return bytes == 2 ? load16(row + 2 * i) : row[i];
}

static unsigned value_at(const struct png_form *form, const uint8_t *row,
			 unsigned bytes, unsigned samples, size_t x, unsigned c)
{
	size_t at = x * samples;

	if (form->channels == 1 && samples >= 3 && !form->classes)
		return gray_of(sample_at(row, bytes, at),
			       sample_at(row, bytes, at + 1),
			       sample_at(row, bytes, at + 2));
	return sample_at(row, bytes, at + (c < samples ? c : 0));
}

/* Writes a row of values of the wanted form. False: a class has more bits. */
static bool put_row(const struct png_form *form, const uint8_t *row,
		    unsigned bytes, unsigned samples, uint32_t width,
		    uint8_t *out)
{
	unsigned shift = bytes > form->bytes ? 8 : 0;

	for (size_t i = 0; i < (size_t)width * form->channels; i++) {
		unsigned v =
			value_at(form, row, bytes, samples, i / form->channels,
				 (unsigned)(i % form->channels));

		if (form->classes && form->bytes == 1 && v > UINT8_MAX)
			return false;
		v >>= form->classes ? 0 : shift;
		if (form->bytes == 2)
			store16(out + 2 * i, (uint16_t)v);
		else
			out[i] = (uint8_t)v;
	}
	return true;
}

/* Reads all rows, of an interlaced PNG as often as it has passes. */
static void read_rows(png_structp png, png_infop info, struct png_reader *r,
		      uint8_t *whole, size_t stride, uint8_t *out)
{
	uint32_t width = png_get_image_width(png, info);
	uint32_t height = png_get_image_height(png, info);
	unsigned bytes = png_get_bit_depth(png, info) == 16 ? 2 : 1;
	unsigned samples = png_get_channels(png, info);
	size_t row = (size_t)width * r->form->channels * r->form->bytes;
	int passes = png_set_interlace_handling(png);

	for (int pass = 1; pass <= passes; pass++) {
		for (uint32_t y = 0; y < height; y++) {
			uint8_t *from = whole + (passes > 1 ? y * stride : 0);

			png_read_row(png, from, NULL);
			if (pass < passes)
				continue;
			if (!put_row(r->form, from, bytes, samples, width,
				     out + y * row))
				png_error(png, "a class is above 255; use "
					       "mask(16)");
		}
	}
}

/* Leaves by longjmp() if libpng finds an error. */
static int read_png(png_structp png, png_infop info, struct png_reader *r,
		    struct buffer *memory)
{
	uint64_t rows, size;
	size_t stride;

	png_read_info(png, info);
	ask_for(png, info, r->form);
	rows = png_get_interlace_type(png, info) == PNG_INTERLACE_NONE
		       ? 1
		       : png_get_image_height(png, info);
	/* Interlaced rows keep the samples of the passes before. */
	stride = (size_t)png_get_image_width(png, info) * SAMPLES_MAX * 2;
	size = (uint64_t)png_get_image_width(png, info) * r->form->channels *
	       r->form->bytes;
	if (!mul_ok(size, png_get_image_height(png, info), &size) ||
	    buffer_reserve(memory, size) || scratch_grow(&r->row, rows, stride))
		return -ENOMEM;
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
	read_rows(png, info, r, r->row.p, stride, memory->bytes);
	return 0;
}

int png_decode(const uint8_t *bytes, size_t size, const struct png_form *form,
	       struct buffer *memory, char *why)
{
	struct png_reader reader = { bytes, size, why, { 0 }, form };
	struct png_size sides;
	png_structp png;
	png_infop info;
	volatile int r = -EBADMSG;

	if (png_measure(bytes, size, &sides)) {
		snprintf(why, PNG_WHY_SIZE, "not a PNG, or of no size");
		return -EBADMSG;
	}
	png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error,
				     on_warning);
	info = png ? png_create_info_struct(png) : NULL;
	if (!info) {
		png_destroy_read_struct(&png, NULL, NULL);
		return -ENOMEM;
	}
	if (!setjmp(png_jmpbuf(png))) {
		png_set_user_limits(png, PNG_SIDE_MAX, PNG_SIDE_MAX);
		png_set_read_fn(png, &reader, on_read);
		r = read_png(png, info, &reader, memory);
	}
	png_destroy_read_struct(&png, &info, NULL);
	scratch_fini(&reader.row);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes PNG. No other file uses libpng. */
#include <errno.h>
#include <png.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"

/* The source that libpng reads from, and the receiver of its errors. */
struct input {
	struct picture_decoder *decoder;
	const uint8_t *bytes;
	size_t size;
};

static void on_error(png_structp png, png_const_charp message)
{
	struct input *in = png_get_error_ptr(png);

	picture_refuse(in->decoder, -EBADMSG, "PNG: %s", message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void on_read(png_structp png, png_bytep out, size_t size)
{
	struct input *in = png_get_io_ptr(png);

	if (size > in->size)
		png_error(png, "the file ends too early");
	memcpy(out, in->bytes, size);
	in->bytes += size;
	in->size -= size;
}

/* Sets libpng up for 8-bit RGB like Pillow: 16 bits lose their lower 8, alpha
   and transparent colors are dropped, gamma is not applied. */
static void ask_for_rgb(png_structp png, png_infop info)
{
	png_byte color = png_get_color_type(png, info);

	png_set_strip_16(png);
	if (color == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	else if (!(color & PNG_COLOR_MASK_COLOR))
		png_set_expand_gray_1_2_4_to_8(png);
	png_set_gray_to_rgb(png);
	png_set_strip_alpha(png);
}

static unsigned read_orientation(png_structp png, png_infop info)
{
	png_bytep exif = NULL;
	png_uint_32 size = 0;

	return png_get_eXIf_1(png, info, &size, &exif)
		       ? picture_exif_orientation(exif, size)
		       : 0;
}

/* Leaves by longjmp() if libpng finds an error. */
static int read_image(struct picture_decoder *d, png_structp png,
		      png_infop info, struct picture_found *out)
{
	int passes, r;

	png_read_info(png, info);
	r = picture_reserve(d, png_get_image_width(png, info),
			    png_get_image_height(png, info), &out->image);
	if (r)
		return r;
	ask_for_rgb(png, info);
	passes = png_set_interlace_handling(png);
	png_read_update_info(png, info);
	if (png_get_rowbytes(png, info) != out->image.stride)
		png_error(png, "unexpected layout");
	while (passes--) {
		for (uint32_t y = 0; y < out->image.height; y++)
			png_read_row(png,
				     out->image.pixels + y * out->image.stride,
				     NULL);
	}
	png_read_end(png, info);
	out->orientation = read_orientation(png, info);
	return 0;
}

static int decode_png(struct picture_decoder *d, const uint8_t *bytes,
		      size_t size, struct picture_found *out)
{
	struct input in = { d, bytes, size };
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &in,
						 on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	/* Volatile: longjmp() may lose the value of a register. */
	volatile int r = -EBADMSG;

	if (!info) {
		png_destroy_read_struct(&png, NULL, NULL);
		return picture_refuse(d, -ENOMEM, "out of memory");
	}
	png_set_read_fn(png, &in, on_read);
	/*
	 * picture_reserve() reports sizes beyond the limits better than libpng.
	 * libpng's own limit of a million pixels per side stays.
	 */
	if (!setjmp(png_jmpbuf(png)))
		r = read_image(d, png, info, out);
	png_destroy_read_struct(&png, &info, NULL);
	return r;
}

static bool is_png(const uint8_t *bytes, size_t size)
{
	return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

const struct picture_format picture_png = {
	.name = "PNG",
	.extensions = ".png",
	.matches = is_png,
	.decode = decode_png,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "beton/beton.h"
#include "loader/codec.h"

struct encoder {
	struct jpeg_compress_struct compressor;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
};

static void on_error(j_common_ptr cinfo)
{
	struct encoder *e = cinfo->client_data;

	longjmp(e->escape, 1);
}

static void on_output(j_common_ptr cinfo)
{
	(void)cinfo;
}

static void encode(struct encoder *e, const struct image *image,
		   unsigned quality)
{
	j_compress_ptr c = &e->compressor;
	JSAMPROW row;

	c->image_width = image->width;
	c->image_height = image->height;
	c->input_components = 3;
	c->in_color_space = JCS_RGB;
	/* The defaults are what FFCV's encoder uses: JFIF, YCbCr 4:2:0. */
	jpeg_set_defaults(c);
	jpeg_set_quality(c, (int)quality, TRUE);
	c->dct_method = JDCT_ISLOW;
	jpeg_start_compress(c, TRUE);
	for (uint32_t y = 0; y < image->height; y++) {
		row = image->pixels + y * image->stride;
		jpeg_write_scanlines(c, &row, 1);
	}
	jpeg_finish_compress(c);
}

int codec_encode(struct codec *codec, const struct image *image,
		 unsigned quality, uint8_t **bytes, size_t *size)
{
	struct encoder e;
	unsigned char *volatile memory = NULL;
	unsigned char *written = NULL;
	unsigned long written_size = 0;

	(void)codec;
	e.compressor.err = jpeg_std_error(&e.errors);
	e.errors.error_exit = on_error;
	e.errors.output_message = on_output;
	e.compressor.client_data = &e;
	if (setjmp(e.escape)) {
		jpeg_destroy_compress(&e.compressor);
		free(memory);
		return -ENOMEM;
	}
	jpeg_create_compress(&e.compressor);
	e.compressor.client_data = &e;
	jpeg_mem_dest(&e.compressor, &written, &written_size);
	encode(&e, image, quality);
	memory = written;
	jpeg_destroy_compress(&e.compressor);
	*bytes = memory;
	*size = written_size;
	return 0;
}

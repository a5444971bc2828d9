/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "fs/base/util/cleanup.h"
#include "loader/image/codec/error.h"
#include "loader/image/codec/target.h"

struct codec_encoder {
	struct jpeg_compress_struct jpeg;
	struct codec_target *target;
	struct codec_error *error;
	const struct image *image; /* image to encode */
	unsigned quality;
};

static int create(void *arg)
{
	struct codec_encoder *e = arg;

	jpeg_create_compress(&e->jpeg);
	e->jpeg.dest = codec_target_manager(e->target);
	return 0;
}

int codec_encoder_open(struct codec_error *error, struct codec_encoder **out)
{
	struct codec_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->error = error;
	e->jpeg.err = codec_error_manager(error);

	int r = codec_target_open(&e->target);

	if (!r)
		r = codec_error_run(error, create, e);
	if (r)
		codec_encoder_close(e);
	else
		*out = e;
	return r;
}

void codec_encoder_close(struct codec_encoder *e)
{
	if (!e)
		return;
	jpeg_destroy_compress(&e->jpeg);
	codec_target_close(e->target);
	free(e);
}

/* libjpeg's defaults are FFCV's choice: JFIF, 4:2:0, Annex K's tables. */
static int encode(void *arg)
{
	struct codec_encoder *e = arg;
	const struct image *image = e->image;
	j_compress_ptr jpeg = &e->jpeg;

	jpeg->image_width = image->width;
	jpeg->image_height = image->height;
	jpeg->input_components = 3;
	jpeg->in_color_space = JCS_RGB;
	jpeg_set_defaults(jpeg);
	jpeg_set_quality(jpeg, (int)e->quality, TRUE);
	jpeg->dct_method = JDCT_ISLOW;
	jpeg_start_compress(jpeg, TRUE);
	while (jpeg->next_scanline < jpeg->image_height) {
		size_t row = jpeg->next_scanline;
		JSAMPROW pixels = image->pixels + row * image->stride;

		jpeg_write_scanlines(jpeg, &pixels, 1);
	}
	jpeg_finish_compress(jpeg);
	return 0;
}

static int check(struct codec_encoder *e)
{
	const struct image *i = e->image;

	if (e->quality < 1 || e->quality > 100)
		return codec_error_set(e->error, -EINVAL,
				       "quality %u is not 1 to 100",
				       e->quality);
	if (!i->width || !i->height || i->width > JPEG_MAX_DIMENSION ||
	    i->height > JPEG_MAX_DIMENSION)
		return codec_error_set(e->error, -EINVAL,
				       "%u x %u pixels are no JPEG", i->width,
				       i->height);
	return 0;
}

int codec_encoder_run(struct codec_encoder *e, const struct image *image,
		      unsigned quality, uint8_t **bytes, size_t *size)
{
	e->image = image;
	e->quality = quality;

	int r = check(e);

	if (r)
		return r;
	r = codec_error_run(e->error, encode, e);
	jpeg_abort_compress(&e->jpeg);

	size_t made_size;
	cleanup_free uint8_t *made = codec_target_take(e->target, &made_size);

	if (r)
		return r;
	*bytes = steal(made);
	*size = made_size;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/thumbnail.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/util/bytes.h"
#include "loader/codec/codec.h"
#include "loader/pipeline/frame.h"

/* Pages enlarge tiny images, which makes artifacts visible: a better
   quality. */
enum { QUALITY = 78, QUALITY_TINY = 95, TINY = 64 };

struct thumbnailer {
	struct frame *frame;
	struct codec *codec;
	const char *message;
	uint8_t pixels[THUMBNAIL_SIDE * THUMBNAIL_SIDE * 3];
};

int thumbnailer_open(struct thumbnailer **out)
{
	struct thumbnailer *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->message = "";
	r = frame_open(&t->frame);
	r = r ? r : codec_open(&t->codec);
	if (r)
		thumbnailer_close(t);
	else
		*out = t;
	return r;
}

void thumbnailer_close(struct thumbnailer *t)
{
	if (!t)
		return;
	codec_close(t->codec);
	frame_close(t->frame);
	free(t);
}

const char *thumbnailer_message(const struct thumbnailer *t)
{
	return t->message;
}

static uint32_t scaled_side(uint32_t side, uint32_t longer)
{
	uint64_t v = ((uint64_t)side * THUMBNAIL_SIDE + longer / 2) / longer;

	return v ? (uint32_t)v : 1;
}

static struct size size_of(const struct pipeline_value *v)
{
	uint32_t longer = v->width > v->height ? v->width : v->height;

	if (longer <= THUMBNAIL_SIDE)
		return (struct size){ v->width, v->height };
	return (struct size){ scaled_side(v->width, longer),
			      scaled_side(v->height, longer) };
}

static void copy_band(const struct band *band, const struct image *out)
{
	uint8_t *to = out->pixels + band->y * out->stride;

	for (uint32_t y = 0; y < band->rows; y++)
		for (size_t x = 0; x < out->width; x++)
			for (size_t c = 0; c < 3; c++)
				*to++ = band->channel[c][y * band->stride +
							 x * band->step];
}

static int decode_image(struct thumbnailer *t,
			const struct pipeline_value *value,
			const struct image *out)
{
	const struct size to = { out->width, out->height };
	struct band band;
	bool mirror;
	int r = frame_start(t->frame, value, QUALITY_DRAFT, NULL);

	if (!r && (to.width != value->width || to.height != value->height))
		r = frame_resample(t->frame, INTERPOLATION_BILINEAR, to);
	while (!r && !(r = frame_next(t->frame, &band, &mirror)) && band.rows)
		copy_band(&band, out);
	t->message = r ? frame_message(t->frame) : "";
	return r;
}

int thumbnail_make(struct thumbnailer *t, const struct pipeline_value *value,
		   struct thumbnail *out)
{
	const struct size size = size_of(value);
	const struct image image = { .pixels = t->pixels,
				     .width = size.width,
				     .height = size.height,
				     .stride = 3 * (size_t)size.width };
	bool tiny = size.width <= TINY && size.height <= TINY;
	struct thumbnail made = { .width = size.width, .height = size.height };
	int r = decode_image(t, value, &image);

	if (r)
		return r;
	r = codec_encode(t->codec, &image, tiny ? QUALITY_TINY : QUALITY,
			 &made.jpeg, &made.size);
	if (r)
		t->message = codec_message(t->codec);
	else
		*out = made;
	return r;
}

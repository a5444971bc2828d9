/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/codec.h"
#include "loader/scratch.h"
#include "loader/stage.h"

enum { CHANNELS = 3 };

struct lines {
	struct codec *codec;
	bool decoding;	   /* else there is no more than `rows` */
	struct image rows; /* what there is at present, */
	uint32_t first;	   /* from this row of the rectangle on */
	uint64_t *decode_ns;
	struct scratch mirrored; /* a row */
};

int lines_open(struct lines **out)
{
	struct lines *l = calloc(1, sizeof(*l));
	int r = l ? codec_open(&l->codec) : -ENOMEM;

	if (r)
		lines_close(l);
	else
		*out = l;
	return r;
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	codec_close(l->codec);
	scratch_fini(&l->mirrored);
	free(l);
}

const char *lines_message(const struct lines *l)
{
	return codec_message(l->codec);
}

int lines_probe(struct lines *l, const uint8_t *bytes, size_t size,
		uint32_t *width, uint32_t *height)
{
	struct codec_info info;
	int r = codec_probe(l->codec, bytes, size, &info);

	if (r)
		return r;
	*width = info.width;
	*height = info.height;
	return 0;
}

void lines_of_image(struct lines *l, const struct image *image,
		    const struct rect *part)
{
	l->decoding = false;
	l->first = 0;
	l->rows = (struct image){
		.pixels = image->pixels + part->y * image->stride +
			  (size_t)part->x * CHANNELS,
		.width = part->width,
		.height = part->height,
		.stride = image->stride,
	};
}

int lines_of_jpeg(struct lines *l, const uint8_t *bytes, size_t size,
		  const struct rect *part, uint64_t *decode_ns)
{
	uint64_t start = decode_ns ? stage_now_ns() : 0;
	int r = codec_start(l->codec, bytes, size, part);

	if (decode_ns)
		*decode_ns += stage_now_ns() - start;
	l->decode_ns = decode_ns;
	l->decoding = !r;
	l->rows = (struct image){ .width = part->width };
	l->first = 0;
	return r;
}

/* What comes after l->rows. */
static int decode_more(struct lines *l)
{
	uint64_t start = l->decode_ns ? stage_now_ns() : 0;
	int r;

	l->first += l->rows.height;
	r = codec_rows(l->codec, &l->rows);
	if (l->decode_ns)
		*l->decode_ns += stage_now_ns() - start;
	l->decoding = !r && l->rows.height;
	return r;
}

int lines_next(struct lines *l, struct image *out)
{
	int r = l->decoding ? decode_more(l) : 0;

	if (r)
		return r;
	*out = l->rows;
	if (!l->decoding)
		l->rows.height = 0;
	return 0;
}

static int mirror_row(struct lines *l, const uint8_t **pixels)
{
	const uint8_t *from = *pixels;
	uint8_t *to;
	int r = scratch_grow(&l->mirrored, l->rows.width, CHANNELS);

	if (r)
		return r;
	to = (uint8_t *)l->mirrored.p + (size_t)l->rows.width * CHANNELS;
	for (uint32_t x = 0; x < l->rows.width; x++, from += CHANNELS) {
		to -= CHANNELS;
		memcpy(to, from, CHANNELS);
	}
	*pixels = to;
	return 0;
}

int lines_row(struct lines *l, uint32_t y, bool mirror, const uint8_t **pixels)
{
	while (l->decoding && y >= l->first + l->rows.height) {
		int r = decode_more(l);

		if (r)
			return r;
	}
	*pixels = l->rows.pixels + (y - l->first) * l->rows.stride;
	return mirror ? mirror_row(l, pixels) : 0;
}

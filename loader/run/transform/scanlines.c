/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/scanlines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/upsample.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

enum {
	CHANNELS = 3,
	/* Number of rows of planes to convert to pixels at a time. */
	FANCY_ROWS = 4,
};

/* The source of rows. */
enum origin {
	ORIGIN_MEMORY, /* `rows` has all rows */
	ORIGIN_CODEC,
	ORIGIN_FANCY,
};

struct scanlines {
	struct codec *codec;
	struct upsample *fancy;
	enum origin origin;
	uint32_t height;   /* of the rectangle */
	struct image rows; /* number of rows in memory */
	uint32_t first;	   /* number of the first row in memory */
	uint64_t *decode_ns;
	struct scratch mirrored; /* one row */
	struct scratch pixels;	 /* FANCY_ROWS rows */
};

int scanlines_open(struct scanlines **out)
{
	struct scanlines *l = calloc(1, sizeof(*l));
	int r = l ? codec_open(&l->codec) : -ENOMEM;

	if (!r)
		r = upsample_open(&l->fancy);
	if (r)
		scanlines_close(l);
	else
		*out = l;
	return r;
}

void scanlines_close(struct scanlines *l)
{
	if (!l)
		return;
	codec_close(l->codec);
	upsample_close(l->fancy);
	scratch_fini(&l->pixels);
	scratch_fini(&l->mirrored);
	free(l);
}

const char *scanlines_message(const struct scanlines *l)
{
	return codec_message(l->codec);
}

int scanlines_probe(struct scanlines *l, const uint8_t *bytes, size_t size,
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

/* Starts a rectangle, with no rows in memory. */
static void restart(struct scanlines *l, enum origin origin,
		    const struct rect *part)
{
	l->origin = origin;
	l->height = part->height;
	l->first = 0;
	l->rows = (struct image){ .width = part->width };
}

void scanlines_of_image(struct scanlines *l, const struct image *image,
			const struct rect *part)
{
	restart(l, ORIGIN_MEMORY, part);
	l->rows.pixels = image->pixels + part->y * image->stride +
			 (size_t)part->x * CHANNELS;
	l->rows.height = part->height;
	l->rows.stride = image->stride;
}

int scanlines_of_jpeg(struct scanlines *l, const uint8_t *bytes, size_t size,
		      const struct rect *part, uint64_t *decode_ns)
{
	uint64_t start = decode_ns ? stage_now_ns() : 0;
	int r = codec_start(l->codec, bytes, size, part);

	if (decode_ns)
		*decode_ns += stage_now_ns() - start;
	restart(l, ORIGIN_CODEC, part);
	l->decode_ns = decode_ns;
	return r;
}

int scanlines_of_planes(struct scanlines *l, const struct baseline_image *image,
			const struct baseline_plane *planes,
			const struct rect *part)
{
	int r = upsample_start(l->fancy, image, planes, part);

	restart(l, ORIGIN_FANCY, part);
	return r;
}

static int decode_more(struct scanlines *l)
{
	uint64_t start = l->decode_ns ? stage_now_ns() : 0;
	int r = codec_rows(l->codec, &l->rows);

	if (l->decode_ns)
		*l->decode_ns += stage_now_ns() - start;
	return r;
}

static int convert_more(struct scanlines *l)
{
	size_t stride = (size_t)l->rows.width * CHANNELS;
	int r = scratch_grow(&l->pixels, stride, FANCY_ROWS);

	if (r)
		return r;
	l->rows.pixels = l->pixels.p;
	l->rows.stride = stride;
	l->rows.height = (uint32_t)min_u64(l->height - l->first, FANCY_ROWS);
	for (uint32_t i = 0; i < l->rows.height; i++)
		memcpy(l->rows.pixels + i * stride,
		       upsample_row(l->fancy, l->first + i), stride);
	return 0;
}

int scanlines_next(struct scanlines *l, struct image *out)
{
	int r = 0;

	if (l->origin != ORIGIN_MEMORY)
		l->first += l->rows.height;
	if (l->origin == ORIGIN_CODEC)
		r = decode_more(l);
	else if (l->origin == ORIGIN_FANCY)
		r = convert_more(l);
	if (r)
		return r;
	*out = l->rows;
	if (l->origin == ORIGIN_MEMORY)
		l->rows.height = 0;
	return 0;
}

static int mirror_row(struct scanlines *l, const uint8_t **pixels)
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

int scanlines_row(struct scanlines *l, uint32_t y, bool mirror,
		  const uint8_t **pixels)
{
	while (l->origin == ORIGIN_CODEC && y >= l->first + l->rows.height) {
		int r;

		l->first += l->rows.height;
		r = decode_more(l);
		if (r)
			return r;
	}
	*pixels = l->origin == ORIGIN_FANCY
			  ? upsample_row(l->fancy, y)
			  : l->rows.pixels + (y - l->first) * l->rows.stride;
	return mirror ? mirror_row(l, pixels) : 0;
}

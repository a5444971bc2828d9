/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/codec/codec.h"
#include "loader/image/codec/index.h"
#include "loader/image/resize/resample.h"
#include "loader/tools/picture/picture.h"

/* The largest page and so the largest value. */
static const uint64_t STORED_MAX = (uint64_t)2 << 30;

struct encoder {
	const struct recipe *recipe;
	struct codec *codec;
	struct codec_indexer *indexer;
	struct picture_decoder *pictures;
	struct resampler *resampler;
	uint8_t *expanded; /* pixels of other channels than RGB */
	size_t expanded_room;
	struct image scaled; /* its memory is scaled_size bytes */
	size_t scaled_size;
	uint64_t draw_key;
};

/* --- modes --------------------------------------------------------------- */

/* Returns whether an image of this many bytes of pixels becomes a JPEG. */
typedef bool wants_jpeg_fn(const struct encoder *e, uint64_t number,
			   uint64_t pixel_bytes);

struct encode_mode_row {
	const char *name;
	wants_jpeg_fn *wants_jpeg;
	bool keeps; /* plain JPEG files are stored as they are */
	bool has_proportion;
};

static bool always(const struct encoder *e, uint64_t number, uint64_t size)
{
	(void)e;
	(void)number;
	(void)size;
	return true;
}

static bool never(const struct encoder *e, uint64_t number, uint64_t size)
{
	return !always(e, number, size);
}

static bool if_large(const struct encoder *e, uint64_t number, uint64_t size)
{
	(void)number;
	return size > e->recipe->smart_threshold;
}

static bool by_chance(const struct encoder *e, uint64_t number, uint64_t size)
{
	struct rng rng = {
		.key = rng_key((uint64_t[]){ e->draw_key, number }, 2),
	};

	(void)size;
	return rng_uniform(&rng) < e->recipe->mode.proportion;
}

static const struct encode_mode_row modes[] = {
	{ .name = "jpg", .wants_jpeg = always },
	{ .name = "raw", .wants_jpeg = never },
	{ .name = "smart", .wants_jpeg = if_large },
	{ .name = "proportion",
	  .wants_jpeg = by_chance,
	  .has_proportion = true },
	{ .name = "keep", .wants_jpeg = always, .keeps = true },
};

static int parse_proportion(const char *text, double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= 1))
		return -EINVAL;
	*out = v;
	return 0;
}

int encode_parse_mode(const char *text, void *mode)
{
	struct encode_mode *out = mode;
	size_t n = strcspn(text, "=");
	double p = 0;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		const struct encode_mode_row *row = &modes[i];

		if (strlen(row->name) != n || memcmp(row->name, text, n) != 0)
			continue;
		if (row->has_proportion != (text[n] == '='))
			return -EINVAL;
		if (text[n] && parse_proportion(text + n + 1, &p))
			return -EINVAL;
		*out = (struct encode_mode){ row, p };
		return 0;
	}
	return -EINVAL;
}

const char *encode_mode_name(const struct encode_mode *mode)
{
	return mode->row->name;
}

/* --- the encoder --------------------------------------------------------- */

int encoder_open(const struct recipe *recipe, struct encoder **out)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->recipe = recipe;
	e->draw_key = rng_key(
		(uint64_t[]){ recipe->seed, rng_key_of_text("proportion") }, 2);
	r = codec_open(&e->codec);
	r = r ? r : picture_decoder_open(e->codec, &e->pictures);
	r = r ? r : resampler_open(&e->resampler);
	r = r ? r : codec_indexer_open(&e->indexer);
	if (r) {
		encoder_close(e);
		return r;
	}
	*out = e;
	return 0;
}

void encoder_close(struct encoder *e)
{
	if (!e)
		return;
	codec_indexer_close(e->indexer);
	resampler_close(e->resampler);
	picture_decoder_close(e->pictures);
	codec_close(e->codec);
	free(e->scaled.pixels);
	free(e->expanded);
	free(e);
}

static int refuse_image(struct encoded *out, int error, const char *why)
{
	out->status = error;
	out->fatal = error == -ENOMEM || error == -ELIBACC;
	snprintf(out->why, sizeof(out->why), "%s", why);
	return error;
}

static int reserve_bytes(uint8_t **bytes, size_t *room, size_t size)
{
	if (*room >= size)
		return 0;
	free(*bytes);
	*bytes = malloc(size);
	*room = *bytes ? size : 0;
	return *bytes ? 0 : -ENOMEM;
}

/* Shrinks *image if its longer side is above the limit. */
static int limit_size(struct encoder *e, struct image *image)
{
	struct image *s = &e->scaled;
	int r;

	resample_limit(image, e->recipe->max_resolution, s);
	r = reserve_bytes(&s->pixels, &e->scaled_size, s->stride * s->height);
	r = r ? r : resample(e->resampler, INTERPOLATION_AREA, image, s);
	if (!r)
		*image = *s;
	return r;
}

static int store_copy(struct encoded *out, const uint8_t *bytes, size_t size)
{
	if (size > STORED_MAX)
		return refuse_image(out, -EFBIG, "more than 2 GiB of pixels");
	out->bytes = malloc(size);
	if (!out->bytes)
		return refuse_image(out, -ENOMEM, "out of memory");
	memcpy(out->bytes, bytes, size);
	out->size = size;
	return 0;
}

static int store_jpeg(struct encoder *e, const struct image *image,
		      struct encoded *out)
{
	uint8_t *bytes = NULL;
	int r = codec_encode(e->codec, image, (unsigned)e->recipe->quality,
			     &bytes, &out->size);

	out->mode = BETON_MODE_JPG;
	out->bytes = bytes;
	return r ? refuse_image(out, r, codec_message(e->codec)) : 0;
}

static int store_image(struct encoder *e, const struct image *image,
		       uint64_t number, struct encoded *out)
{
	uint64_t size = (uint64_t)image->width * image->height * 3;

	if (e->recipe->mode.row->wants_jpeg(e, number, size))
		return store_jpeg(e, image, out);
	out->mode = BETON_MODE_RAW;
	return store_copy(out, image->pixels, size);
}

/*
 * Adds an index to a JPEG that can have one: to all that the codec encodes and
 * to most that are kept as they are.
 */
static void add_index(struct encoder *e, struct encoded *out)
{
	uint8_t *bytes = NULL;
	size_t size = 0;
	int r = codec_index(e->indexer, out->bytes, out->size, INDEX_AUTO,
			    &bytes, &size);

	if (r && r != -ENOMEM)
		return;
	free(out->bytes);
	out->bytes = bytes;
	out->size = size;
	if (r)
		refuse_image(out, r, "out of memory");
}

/* Converts pixels to RGB, in e->expanded unless they are RGB already. */
static int expand_pixels(struct encoder *e, const struct input_value *from,
			 struct image *out)
{
	const uint8_t *in = from->bytes;
	uint64_t n = (uint64_t)from->width * from->height;
	uint8_t *to;

	*out = (struct image){
		.pixels = (uint8_t *)from->bytes,
		.width = from->width,
		.height = from->height,
		.stride = (size_t)from->width * 3,
	};
	if (from->channels == 3)
		return 0;
	if (reserve_bytes(&e->expanded, &e->expanded_room, n * 3))
		return -ENOMEM;
	out->pixels = to = e->expanded;
	for (uint64_t i = 0; i < n; i++, in += from->channels, to += 3)
		for (int c = 0; c < 3; c++)
			to[c] = in[from->channels == 1 ? 0 : c];
	return 0;
}

/* Decodes an image file, or takes pixels. */
static int take_image(struct encoder *e, const struct input_value *from,
		      struct picture *picture, struct encoded *out)
{
	int r;

	*picture = (struct picture){ .plain = false };
	if (!from->channels) {
		r = picture_decode(e->pictures, from->bytes, from->size,
				   picture);
		return r ? refuse_image(out, r, picture_message(e->pictures))
			 : 0;
	}
	if (!from->width || !from->height || from->width > UINT16_MAX ||
	    from->height > UINT16_MAX)
		return refuse_image(out, -EFBIG,
				    "an image has 1 to 65535 pixels a side");
	r = expand_pixels(e, from, &picture->image);
	return r ? refuse_image(out, r, "out of memory") : 0;
}

/* Stores the image in the recipe's form; what exists already may stay. */
static int store(struct encoder *e, const struct input_value *from,
		 const struct picture *picture, bool fits, uint64_t number,
		 struct encoded *out)
{
	bool keeps = fits && e->recipe->mode.row->keeps;

	if (keeps && picture->plain)
		return store_copy(out, from->bytes, from->size);
	if (keeps && from->stored && from->channels) {
		out->mode = BETON_MODE_RAW;
		return store_copy(out, from->bytes, from->size);
	}
	return store_image(e, &picture->image, number, out);
}

static bool is_within_limit(const struct encoder *e, uint32_t width,
			    uint32_t height)
{
	uint64_t limit = e->recipe->max_resolution;

	return !limit || (width <= limit && height <= limit);
}

/* Returns whether the file stays as it is, without being decoded. */
static bool can_keep_undecoded(struct encoder *e,
			       const struct input_value *from,
			       struct picture_size *size)
{
	return e->recipe->mode.row->keeps && !e->recipe->check &&
	       !from->channels &&
	       !picture_probe(e->pictures, from->bytes, from->size, size) &&
	       is_within_limit(e, size->width, size->height);
}

static int encode_decoded(struct encoder *e, const struct input_value *from,
			  uint64_t number, struct encoded *out)
{
	struct picture picture;
	bool fits;
	int r = take_image(e, from, &picture, out);

	if (r)
		return r;
	fits = is_within_limit(e, picture.image.width, picture.image.height);
	r = fits ? 0 : limit_size(e, &picture.image);
	if (r)
		return refuse_image(out, r, strerror(-r));
	out->width = (uint16_t)picture.image.width;
	out->height = (uint16_t)picture.image.height;
	return store(e, from, &picture, fits, number, out);
}

void encode(struct encoder *e, const struct input_value *from, uint64_t number,
	    struct encoded *out)
{
	struct picture_size size;
	int r;

	*out = (struct encoded){ 0 };
	if (can_keep_undecoded(e, from, &size)) {
		out->width = (uint16_t)size.width;
		out->height = (uint16_t)size.height;
		r = store_copy(out, from->bytes, from->size);
	} else {
		r = encode_decoded(e, from, number, out);
	}
	if (!r && e->recipe->index && out->mode == BETON_MODE_JPG)
		add_index(e, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/grid_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/codec.h"
#include "loader/image/codec/png.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/run/transform/frame.h"
#include "loader/run/transform/image_list.h"
#include "loader/util/gray.h"
#include "loader/util/scratch.h"

enum { RGB = 3 };

/* The bytes of an image. */
struct coded {
	const uint8_t *bytes;
	uint64_t size;
};

struct grid_source {
	const struct pipeline_value *value;
	const struct type *from; /* of the value */
	struct grid shape;	 /* type of the grid */
	struct image_list list;	 /* images of a bytes field; else empty */
	struct coded one;	 /* the decoded image */
	uint32_t first;		 /* chosen frames */
	uint32_t stride;
	bool is_chosen;
	struct frame *frame;
	struct codec *codec;
	struct baseline *baseline;
	struct buffer memory;
	struct buffer frames; /* of a list */
	char message[256];
};

int grid_source_open(struct grid_source **out)
{
	struct grid_source *s = calloc(1, sizeof(*s));
	int r = s ? codec_open(&s->codec) : -ENOMEM;

	if (!r)
		r = baseline_open(&s->baseline);
	if (!r)
		r = frame_open(&s->frame);
	if (r)
		grid_source_close(s);
	else
		*out = s;
	return r;
}

void grid_source_close(struct grid_source *s)
{
	if (!s)
		return;
	codec_close(s->codec);
	baseline_close(s->baseline);
	frame_close(s->frame);
	buffer_fini(&s->memory);
	buffer_fini(&s->frames);
	free(s);
}

const char *grid_source_message(const struct grid_source *s)
{
	return s->message;
}

/* Sets the message. */
static int refuse(struct grid_source *s, int e, const char *why)
{
	snprintf(s->message, sizeof(s->message), "%s", why);
	return e;
}

/* --- sizes --- */

static int start_image(struct grid_source *s)
{
	const struct pipeline_value *v = s->value;
	uint64_t size = (uint64_t)RGB * v->width;

	if (!v->width || !v->height)
		return refuse(s, -EINVAL, "an empty image");
	if (v->mode != BETON_MODE_RAW && s->shape.mask)
		return refuse(s, -EINVAL,
			      "JPEG changes the classes of a mask; store it "
			      "raw, as an array, or as PNG in a bytes field");
	if (v->mode == BETON_MODE_RAW &&
	    (!mul_ok(size, v->height, &size) || size != v->size))
		return refuse(s, -EINVAL, "a raw image of another size");
	s->shape.width = v->width;
	s->shape.height = v->height;
	return 0;
}

/* Finds the size of an encoded image in pixels. */
static int measure(struct grid_source *s, const struct coded *c,
		   struct size *out)
{
	struct png_size png;
	struct codec_info jpeg;

	if (!png_measure(c->bytes, c->size, &png)) {
		*out = (struct size){ png.width, png.height };
		return 0;
	}
	if (s->shape.mask || s->shape.dtype != DTYPE_U1)
		return refuse(s, -EBADMSG, "the value is not a PNG");
	if (codec_probe(s->codec, c->bytes, c->size, &jpeg))
		return refuse(s, -EBADMSG, "the value is no PNG and no JPEG");
	*out = (struct size){ jpeg.width, jpeg.height };
	return 0;
}

static int start_bytes(struct grid_source *s)
{
	struct coded first;
	struct size size;
	int r;

	if (image_list_read(s->value->bytes, s->value->size, &s->list))
		return refuse(s, -EBADMSG, "a damaged list of images");
	first.bytes = image_list_at(&s->list, 0, &first.size);
	r = measure(s, &first, &size);
	if (r)
		return r;
	s->shape.width = size.width;
	s->shape.height = size.height;
	s->shape.frames = s->list.count;
	return 0;
}

int grid_source_start(struct grid_source *s, const struct type *from,
		      const struct type *type,
		      const struct pipeline_value *value, struct grid *out)
{
	int r = 0;

	s->value = value;
	s->from = from;
	s->shape = grid_of_type(type);
	s->one = (struct coded){ value->bytes, value->size };
	s->first = 0;
	s->stride = 1;
	s->is_chosen = false;
	if (from->kind == TYPE_IMAGE)
		r = start_image(s);
	else if (from->kind == TYPE_RAGGED)
		r = start_bytes(s);
	*out = s->shape;
	return r;
}

void grid_source_window(struct grid_source *s, uint32_t first, uint32_t stride,
			uint32_t count, struct grid *out)
{
	s->first = first;
	s->stride = stride;
	s->is_chosen = true;
	s->shape.frames = out->frames = count;
}

/* --- pixels --- */

static int reserve(struct grid_source *s, struct grid *g)
{
	uint64_t size = grid_pack(g);

	if (size == UINT64_MAX || buffer_reserve(&s->memory, size))
		return refuse(s, -ENOMEM, "no memory for the image");
	g->values = s->memory.bytes;
	return 0;
}

static void rgb_to_gray(const uint8_t *in, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++, in += RGB)
		out[i] = (uint8_t)gray_of(in[0], in[1], in[2]);
}

static void first_channel(const uint8_t *in, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = in[RGB * i];
}

static int part_of_raw(struct grid_source *s, const struct rect *part,
		       struct grid *out)
{
	const struct pipeline_value *v = s->value;
	const uint8_t *in;
	int r = reserve(s, out);

	for (uint32_t y = 0; !r && y < part->height; y++) {
		in = v->bytes +
		     RGB * (((size_t)part->y + y) * v->width + part->x);
		(s->shape.mask ? first_channel : rgb_to_gray)(
			in, part->width, grid_row(out, 0, y));
	}
	return r;
}

/* -ENOTSUP: not a baseline JPEG. */
static int part_of_baseline(struct grid_source *s, const struct rect *part,
			    struct grid *out)
{
	struct baseline_image jpeg;
	struct baseline_plane luma;
	struct entry_index index;
	int r = baseline_header(s->baseline, s->one.bytes, s->one.size, &jpeg);

	if (r)
		return r;
	if (jpeg.width != s->shape.width || jpeg.height != s->shape.height)
		return -ENOTSUP;
	r = baseline_stored_index(s->baseline, &jpeg, &index);
	if (r != -ENOMEM)
		r = baseline_decode_luma(s->baseline, &jpeg, part,
					 r ? NULL : &index, &luma);
	if (r)
		return r;
	out->values = luma.samples;
	out->stride = luma.stride;
	return 0;
}

static int gray_by_codec(struct grid_source *s, const struct rect *part,
			 struct grid *out)
{
	uint32_t y = 0;
	struct image rows;
	int r = reserve(s, out);

	if (!r)
		r = codec_start_gray(s->codec, s->one.bytes, s->one.size, part);
	while (!r && !(r = codec_rows(s->codec, &rows)) && rows.height) {
		for (uint32_t i = 0; i < rows.height; i++, y++)
			memcpy(grid_row(out, 0, y),
			       rows.pixels + i * rows.stride,
			       grid_row_size(out));
	}
	return r ? refuse(s, -EBADMSG, codec_message(s->codec)) : 0;
}

static int gray_of_jpeg(struct grid_source *s, const struct rect *part,
			struct grid *out)
{
	struct codec_info info;
	int r = part_of_baseline(s, part, out);

	if (!r || r == -ENOMEM)
		return r ? refuse(s, r, "no memory for the image") : 0;
	if (codec_probe(s->codec, s->one.bytes, s->one.size, &info))
		return refuse(s, -EBADMSG, codec_message(s->codec));
	if (info.width != s->shape.width || info.height != s->shape.height)
		return refuse(
			s, -EINVAL,
			"the JPEG has another size than the dataset states");
	return gray_by_codec(s, part, out);
}

static void put_band(const struct band *band, const struct grid *out)
{
	for (uint32_t y = 0; y < band->rows; y++) {
		uint8_t *to = grid_row(out, 0, band->y + y);

		for (size_t i = 0; i < (size_t)RGB * out->width; i++)
			to[i] = band->channel[i % RGB][y * band->stride +
						       i / RGB * band->step];
	}
}

static int rgb_of_jpeg(struct grid_source *s, const struct rect *part,
		       struct grid *out)
{
	const struct pipeline_value v = {
		.bytes = s->one.bytes,
		.size = s->one.size,
		.mode = BETON_MODE_JPG,
		.width = s->shape.width,
		.height = s->shape.height,
	};
	struct band band;
	bool mirror;
	int r = reserve(s, out);

	if (r)
		return r;
	r = frame_start(s->frame, &v, QUALITY_EXACT, NULL);
	if (!r)
		frame_crop(s->frame, part);
	while (!r && !(r = frame_next(s->frame, &band, &mirror)) && band.rows)
		put_band(&band, out);
	return r ? refuse(s, r, frame_message(s->frame)) : 0;
}

static int part_of_png(struct grid_source *s, const struct rect *part,
		       struct grid *out)
{
	const struct png_form form = {
		.classes = s->shape.mask,
		.channels = s->shape.channels,
		.bytes = (unsigned)dtype_size(s->shape.dtype),
	};
	struct grid whole = s->shape;
	struct png_size size;
	int r;

	whole.frames = 1;
	if (png_measure(s->one.bytes, s->one.size, &size) ||
	    size.width != whole.width || size.height != whole.height)
		return refuse(s, -EINVAL, "the images differ in size");
	r = png_decode(s->one.bytes, s->one.size, &form, &s->memory,
		       s->message);

	if (r == -ENOMEM)
		return refuse(s, r, "no memory for the image");
	if (r)
		return r;
	grid_pack(&whole);
	whole.values = s->memory.bytes;
	grid_crop(&whole, part);
	*out = whole;
	return 0;
}

/* Writes the part of the image `one`. */
static int part_of_one(struct grid_source *s, const struct rect *part,
		       struct grid *out)
{
	*out = s->shape;
	out->frames = 1;
	out->width = part->width;
	out->height = part->height;
	if (s->from->kind == TYPE_IMAGE && s->value->mode == BETON_MODE_RAW)
		return part_of_raw(s, part, out);
	if (png_is(s->one.bytes, s->one.size) && s->from->kind == TYPE_RAGGED)
		return part_of_png(s, part, out);
	return out->channels == 1 ? gray_of_jpeg(s, part, out)
				  : rgb_of_jpeg(s, part, out);
}

/* Writes the part of every chosen frame. */
static int part_of_list(struct grid_source *s, const struct rect *part,
			struct grid *out)
{
	struct grid one, to;
	uint64_t size;
	int r = 0;

	*out = s->shape;
	out->width = part->width;
	out->height = part->height;
	size = grid_pack(out);
	if (size == UINT64_MAX || buffer_reserve(&s->frames, size))
		return refuse(s, -ENOMEM, "no memory for the images");
	out->values = s->frames.bytes;
	for (uint32_t i = 0; !r && i < out->frames; i++) {
		uint64_t at = s->first + (uint64_t)i * s->stride;

		s->one.bytes = image_list_at(
			&s->list, (uint32_t)min_u64(at, s->list.count - 1),
			&s->one.size);
		r = part_of_one(s, part, &one);
		to = *out;
		to.values = grid_row(out, i, 0);
		if (!r)
			grid_copy(&one, false, &to);
	}
	return r;
}

static void part_of_array(struct grid_source *s, const struct rect *part,
			  struct grid *out)
{
	*out = s->shape;
	grid_pack(out);
	/* Not owned, and never written. */
	out->values =
		(uint8_t *)(uintptr_t)s->value->bytes + s->first * out->frame;
	out->frame *= s->stride;
	grid_crop(out, part);
}

int grid_source_part(struct grid_source *s, const struct rect *part,
		     struct grid *out)
{
	if (s->from->kind == TYPE_ARRAY) {
		part_of_array(s, part, out);
		return 0;
	}
	if (s->from->kind == TYPE_IMAGE ||
	    (s->list.count == 1 && !s->is_chosen))
		return part_of_one(s, part, out);
	if (s->is_chosen)
		return part_of_list(s, part, out);
	return refuse(s, -EINVAL,
		      "a list of several images; choose some, as in "
		      "`| window(8)'");
}

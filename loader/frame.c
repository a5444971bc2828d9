/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/bytes.h"
#include "loader/buffer.h"

struct frame {
	const struct pipeline_value *value;
	enum quality quality;
	bool decoded; /* `image` holds pixels */
	struct image image;
	struct rect view; /* of the value, or of `image` once decoded */
	bool mirror;	  /* the view's left and right are exchanged */
	struct codec *codec;
	struct resampler *resampler;
	struct buffer buffers[2]; /* a step reads one and fills the other */
	unsigned next;
	char message[192];
};

int frame_open(struct frame **out)
{
	struct frame *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (!r)
		r = codec_open(&f->codec);
	if (!r)
		r = resampler_open(&f->resampler);
	if (r)
		frame_close(f);
	else
		*out = f;
	return r;
}

void frame_close(struct frame *f)
{
	if (!f)
		return;
	codec_close(f->codec);
	resampler_close(f->resampler);
	buffer_fini(&f->buffers[0]);
	buffer_fini(&f->buffers[1]);
	free(f);
}

const char *frame_message(const struct frame *f)
{
	return f->message;
}

static int start_raw(struct frame *f)
{
	const struct pipeline_value *v = f->value;
	uint64_t size = 3 * (uint64_t)v->width;

	if (!mul_ok(size, v->height, &size) || size != v->size) {
		snprintf(f->message, sizeof(f->message),
			 "%llu bytes for a raw image of %ux%u",
			 (unsigned long long)v->size, v->width, v->height);
		return -EINVAL;
	}
	return 0;
}

static int start_jpeg(struct frame *f)
{
	const struct pipeline_value *v = f->value;
	struct codec_info info;
	int r = codec_probe(f->codec, v->bytes, v->size, &info);

	if (r) {
		snprintf(f->message, sizeof(f->message), "%s",
			 codec_message(f->codec));
		return r;
	}
	if (info.width == v->width && info.height == v->height)
		return 0;
	snprintf(f->message, sizeof(f->message),
		 "the JPEG is %ux%u, the dataset says %ux%u", info.width,
		 info.height, v->width, v->height);
	return -EINVAL;
}

int frame_start(struct frame *f, const struct pipeline_value *value,
		enum quality quality)
{
	f->value = value;
	f->quality = quality;
	f->decoded = false;
	f->mirror = false;
	f->view =
		(struct rect){ .width = value->width, .height = value->height };
	if (!value->width || !value->height) {
		snprintf(f->message, sizeof(f->message),
			 "an empty image, %ux%u", value->width, value->height);
		return -EINVAL;
	}
	return value->mode == BETON_MODE_RAW ? start_raw(f) : start_jpeg(f);
}

void frame_crop(struct frame *f, const struct rect *part)
{
	struct rect *v = &f->view;

	v->x += f->mirror ? v->width - part->x - part->width : part->x;
	v->y += part->y;
	v->width = part->width;
	v->height = part->height;
}

void frame_mirror(struct frame *f)
{
	f->mirror = !f->mirror;
}

/* An image of the given size in the buffer whose turn it is. */
static int take_buffer(struct frame *f, uint32_t width, uint32_t height,
		       struct image *out)
{
	struct buffer *b = &f->buffers[f->next];
	uint64_t size;

	if (!mul_ok(3 * (uint64_t)width, height, &size) ||
	    buffer_reserve(b, size)) {
		snprintf(f->message, sizeof(f->message),
			 "no memory for %ux%u pixels", width, height);
		return -ENOMEM;
	}
	f->next = !f->next;
	*out = (struct image){ b->bytes, width, height, 3 * (size_t)width };
	return 0;
}

/* From now on the frame is these pixels. */
static void set_image(struct frame *f, const struct image *image)
{
	f->image = *image;
	f->view =
		(struct rect){ .width = image->width, .height = image->height };
}

static int decode_jpeg(struct frame *f)
{
	const struct pipeline_value *v = f->value;
	struct image image;
	int r = take_buffer(f, f->view.width, f->view.height, &image);

	if (r)
		return r;
	r = codec_decode(f->codec, v->bytes, v->size, &f->view, f->quality,
			 &image);
	if (r) {
		snprintf(f->message, sizeof(f->message), "%s",
			 codec_message(f->codec));
		return r;
	}
	set_image(f, &image);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int frame_decode(struct frame *f, uint64_t *decode_ns)
{
	const struct pipeline_value *v = f->value;
	uint64_t start;
	int r = 0;

	if (f->decoded)
		return 0;
	if (v->mode == BETON_MODE_RAW) {
		/* Borrowed, and only ever read. */
		f->image = (struct image){ (uint8_t *)(uintptr_t)v->bytes,
					   v->width, v->height,
					   3 * (size_t)v->width };
	} else {
		start = decode_ns ? now_ns() : 0;
		r = decode_jpeg(f);
		if (decode_ns)
			*decode_ns += now_ns() - start;
	}
	f->decoded = !r;
	return r;
}

struct image frame_image(const struct frame *f, bool *mirror)
{
	struct image view = f->image;

	view.pixels += f->view.y * view.stride + 3 * (size_t)f->view.x;
	view.width = f->view.width;
	view.height = f->view.height;
	*mirror = f->mirror;
	return view;
}

/* Makes the mirrored view pixels of their own: resampling is not symmetric. */
static int mirror_pixels(struct frame *f)
{
	struct image in = frame_image(f, &(bool){ false }), out;
	int r = take_buffer(f, in.width, in.height, &out);

	if (r)
		return r;
	for (size_t y = 0; y < in.height; y++) {
		const uint8_t *from = in.pixels + y * in.stride;
		uint8_t *to = out.pixels + (y + 1) * out.stride;

		for (size_t x = 0; x < in.width; x++, from += 3) {
			to -= 3;
			memcpy(to, from, 3);
		}
	}
	set_image(f, &out);
	f->mirror = false;
	return 0;
}

int frame_resample(struct frame *f, enum interpolation how, struct size to)
{
	struct image in, out;
	int r = f->mirror ? mirror_pixels(f) : 0;

	if (!r)
		r = take_buffer(f, to.width, to.height, &out);
	if (r)
		return r;
	in = frame_image(f, &(bool){ false });
	r = resample(f->resampler, how, &in, &out);
	if (r)
		snprintf(f->message, sizeof(f->message), "resampling: %s",
			 strerror(-r));
	else
		set_image(f, &out);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/picture/picture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/codec/exif.h"
#include "loader/tools/picture/format.h"

/* Memory beyond this size is freed after the image that needed it. */
static const size_t KEEP_MEMORY = (size_t)64 << 20;

/* --- what the formats share ---------------------------------------------- */

int picture_refuse(struct picture_decoder *d, int error, const char *format,
		   ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(d->message, sizeof(d->message), format, args);
	va_end(args);
	return error;
}

static int grow_memory(struct picture_decoder *d, struct picture_memory *m,
		       size_t size)
{
	if (m->size >= size && m->size <= KEEP_MEMORY)
		return 0;
	free(m->bytes);
	m->size = 0;
	/* Not calloc(): pages that a short file never fills stay untouched. */
	m->bytes = malloc(size);
	/*
	 * A failure to get much memory is the image's fault, not the machine's.
	 */
	if (!m->bytes)
		return picture_refuse(d, size > KEEP_MEMORY ? -EFBIG : -ENOMEM,
				      "no memory for %zu MiB of pixels",
				      size >> 20);
	m->size = size;
	return 0;
}

int picture_reserve(struct picture_decoder *d, uint32_t width, uint32_t height,
		    struct image *image)
{
	int r;

	if (!width || !height)
		return picture_refuse(d, -EBADMSG, "an image without pixels");
	if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX)
		return picture_refuse(d, -EFBIG,
				      "%u x %u pixels; a side may have %d",
				      width, height, PICTURE_SIDE_MAX);
	if ((uint64_t)width * height > PICTURE_PIXELS_MAX)
		return picture_refuse(d, -EFBIG,
				      "%u x %u pixels; an image may have %d",
				      width, height, PICTURE_PIXELS_MAX);
	r = grow_memory(d, &d->decoded, (size_t)width * height * 3);
	if (r)
		return r;
	*image = (struct image){
		.pixels = d->decoded.bytes,
		.width = width,
		.height = height,
		.stride = (size_t)width * 3,
	};
	return 0;
}

/* --- orientation --------------------------------------------------------- */

unsigned picture_exif_orientation(const uint8_t *tiff, size_t size)
{
	static const char marker[6] = "Exif\0";
	cleanup_free uint8_t *segment = NULL;

	/*
	 * Some writers leave JPEG's marker in front of the block; otherwise it
	 * is added.
	 */
	if (size >= sizeof(marker) && !memcmp(tiff, marker, sizeof(marker)))
		return exif_orientation(tiff, size);
	segment = malloc(sizeof(marker) + size);
	if (!segment)
		return 1;
	memcpy(segment, marker, sizeof(marker));
	memcpy(segment + sizeof(marker), tiff, size);
	return exif_orientation(segment, sizeof(marker) + size);
}

/* The source of each pixel of the upright image, by orientation. */
static const struct turn {
	bool swap; /* rows become columns */
	bool mirror_x;
	bool mirror_y;
} turns[] = {
	[1] = { false, false, false }, [2] = { false, true, false },
	[3] = { false, true, true },   [4] = { false, false, true },
	[5] = { true, false, false },  [6] = { true, false, true },
	[7] = { true, true, true },    [8] = { true, true, false },
};

/*
 * `step_x` and `step_y` are the bytes in the source from one pixel of the
 * result to the next.
 */
static void copy_pixels(const uint8_t *from, ptrdiff_t step_x, ptrdiff_t step_y,
			struct image *to)
{
	for (uint32_t y = 0; y < to->height; y++) {
		const uint8_t *in = from + (ptrdiff_t)y * step_y;
		uint8_t *out = to->pixels + y * to->stride;

		for (uint32_t x = 0; x < to->width; x++) {
			memcpy(out, in, 3);
			out += 3;
			in += step_x;
		}
	}
}

static int turn_image(struct picture_decoder *d, unsigned orientation,
		      struct image *image)
{
	const struct turn *t = &turns[orientation];
	ptrdiff_t step_x = 3, step_y = (ptrdiff_t)image->stride;
	const uint8_t *from = image->pixels;
	struct image out = *image;
	int r = grow_memory(d, &d->turned,
			    (size_t)image->width * image->height * 3);

	if (r)
		return r;
	if (t->mirror_x) {
		from += (image->width - 1) * step_x;
		step_x = -step_x;
	}
	if (t->mirror_y) {
		from += (image->height - 1) * step_y;
		step_y = -step_y;
	}
	if (t->swap) {
		out.width = image->height;
		out.height = image->width;
	}
	out.pixels = d->turned.bytes;
	out.stride = (size_t)out.width * 3;
	if (t->swap)
		copy_pixels(from, step_y, step_x, &out);
	else
		copy_pixels(from, step_x, step_y, &out);
	*image = out;
	return 0;
}

/* --- formats ------------------------------------------------------------- */

int picture_decode_jpeg(struct picture_decoder *d, const uint8_t *bytes,
			size_t size, struct picture_found *out)
{
	struct codec_info info = { 0 };
	int r = codec_probe(d->codec, bytes, size, &info);

	if (r)
		return picture_refuse(d, r, "%s", codec_message(d->codec));
	r = picture_reserve(d, info.width, info.height, &out->image);
	if (r)
		return r;
	r = codec_decode(d->codec, bytes, size,
			 &(struct rect){ 0, 0, info.width, info.height },
			 &out->image);
	if (r)
		return picture_refuse(d, r, "%s", codec_message(d->codec));
	out->orientation = info.orientation;
	out->plain = info.baseline && info.color != CODEC_CMYK;
	return 0;
}

static bool is_jpeg(const uint8_t *bytes, size_t size)
{
	return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

static bool is_png(const uint8_t *bytes, size_t size)
{
	return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_webp(const uint8_t *bytes, size_t size)
{
	return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 &&
	       memcmp(bytes + 8, "WEBP", 4) == 0;
}

static const struct picture_format {
	bool (*matches)(const uint8_t *bytes, size_t size);
	picture_decode_fn *decode;
} formats[] = {
	{ is_jpeg, picture_decode_jpeg },
	{ is_png, picture_decode_png },
	{ is_webp, picture_decode_webp },
};

static const struct picture_format *find_format(const uint8_t *bytes,
						size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].matches(bytes, size))
			return &formats[i];
	}
	return NULL;
}

/* --- the module ---------------------------------------------------------- */

int picture_decoder_open(struct codec *codec, struct picture_decoder **out)
{
	struct picture_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->codec = codec;
	*out = d;
	return 0;
}

void picture_decoder_close(struct picture_decoder *d)
{
	if (!d)
		return;
	free(d->decoded.bytes);
	free(d->turned.bytes);
	free(d);
}

const char *picture_message(const struct picture_decoder *d)
{
	return d->message;
}

int picture_decode(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		   struct picture *out)
{
	const struct picture_format *format = find_format(bytes, size);
	struct picture_found found = { 0 };
	int r;

	if (!format)
		return picture_refuse(d, -EBADMSG, "%s",
				      size ? "not a JPEG, PNG or WebP image"
					   : "an empty file");
	r = format->decode(d, bytes, size, &found);
	if (!r && found.orientation > 1)
		r = turn_image(d, found.orientation, &found.image);
	if (r)
		return r;
	out->image = found.image;
	out->plain = found.plain && found.orientation <= 1;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/picture/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"

/* --- orientation --------------------------------------------------------- */

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
	int r = picture_grow(d, &d->turned,
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

static const struct picture_format *const formats[] = {
	&picture_jpeg, &picture_png,  &picture_webp, &picture_gif, &picture_bmp,
	&picture_tiff, &picture_avif, &picture_heic, &picture_jxl,
};

static const struct picture_format *find_format(const uint8_t *bytes,
						size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i]->matches(bytes, size))
			return formats[i];
	}
	return NULL;
}

/* Moves *at to the next word, and returns its length, which is 0 at the
   end. */
static size_t next_word(const char **at)
{
	*at += strspn(*at, " ");
	return strcspn(*at, " ");
}

bool picture_has_extension(const char *name)
{
	const char *dot = strrchr(name, '.'), *e;
	size_t n;

	if (!dot)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (e = formats[i]->extensions; (n = next_word(&e)); e += n)
			if (strlen(dot) == n && !strncasecmp(dot, e, n))
				return true;
	return false;
}

/* Appends a word of n bytes to a list in `out`. */
static void add_word(char out[PICTURE_LIST_SIZE], const char *word, size_t n,
		     bool last)
{
	size_t used = strlen(out);

	snprintf(out + used, PICTURE_LIST_SIZE - used, "%s%.*s",
		 !used	? ""
		 : last ? " or "
			: ", ",
		 (int)n, word);
}

const char *picture_extensions(char out[PICTURE_LIST_SIZE])
{
	const char *e;
	size_t n;

	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (e = formats[i]->extensions; (n = next_word(&e)); e += n)
			add_word(out, e, n,
				 i + 1 == ARRAY_LEN(formats) && !e[n]);
	return out;
}

void picture_print_formats(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		const struct picture_format *f = formats[i];

		if (!f->package)
			continue;
		fputs("  ", out);
		for (const char *c = f->name; *c; c++)
			fputc(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c,
			      out);
		fprintf(out, ": %s%s\n", f->decode ? "yes" : "no: needs ",
			f->decode ? "" : f->package);
	}
}

static int refuse_unknown(struct picture_decoder *d, size_t size)
{
	char names[PICTURE_LIST_SIZE] = "";

	if (!size)
		return picture_refuse(d, -EBADMSG, "an empty file");
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		add_word(names, formats[i]->name, strlen(formats[i]->name),
			 i + 1 == ARRAY_LEN(formats));
	return picture_refuse(d, -EBADMSG, "not a %s image", names);
}

/* --- the module ---------------------------------------------------------- */

int picture_decoder_open(struct codec *codec, struct picture_decoder **out)
{
	struct picture_decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->codec = codec;
	d->pixels_max = PICTURE_PIXELS_MAX;
	r = baseline_open(&d->baseline);
	r = r ? r : upsample_open(&d->upsample);
	if (r)
		picture_decoder_close(d);
	else
		*out = d;
	return r;
}

void picture_decoder_close(struct picture_decoder *d)
{
	if (!d)
		return;
	baseline_close(d->baseline);
	upsample_close(d->upsample);
	picture_pillow_close(d);
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
		return refuse_unknown(d, size);
	if (!format->decode)
		return picture_refuse(d, -ENOTSUP,
				      "built without support for %s: install "
				      "%s and build again",
				      format->name, format->package);
	r = format->decode(d, bytes, size, &found);
	if (!r && found.orientation > 1)
		r = turn_image(d, found.orientation, &found.image);
	if (r)
		return r;
	out->image = found.image;
	out->plain = found.plain && found.orientation <= 1;
	return 0;
}

int picture_probe(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		  struct picture_size *out)
{
	return picture_jpeg.matches(bytes, size)
		       ? picture_jpeg_probe(d, bytes, size, &out->width,
					    &out->height)
		       : -ENOTSUP;
}

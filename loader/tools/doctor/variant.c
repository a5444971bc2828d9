/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/variant.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/writer/rewrite.h"
#include "fs/data/writer/writer.h"
#include "loader/image/codec/codec.h"
#include "loader/image/codec/recode.h"
#include "loader/image/resize/resample.h"

enum {
	SIZE_MAX_READ = 96 << 20,
	PIXELS_MAX = 64 << 20, /* bytes of an image's pixels; larger images are
				  not changed */
	PAGE = 8 << 20,
	READ_S = 4,
	SAMPLES_LEAST = 8,
	QUALITY = 90,
	QUALITY_LOW = 75,
	/*
	 * Stored images are larger than a random crop makes them, by as much as
	 * in FFCV's own examples: 256 for 224.
	 */
	MARGIN_PERCENT = 115,
};

struct variant_source {
	struct dataset *dataset;
	struct log *log;
	size_t num_samples;
	struct rewrite_sample **samples; /* owned */
	struct codec *codec;
	struct codec_recoder *recoder;
	struct resampler *resampler;
	struct symbols_codes codes;
	bool counted;
	uint64_t written;
};

/* --- reading ------------------------------------------------------------- */

static bool is_image(const struct rewrite_value *v)
{
	return field_is_image(v->field);
}

/* Returns the bytes of a sample, or of its images' pixels if those are more,
   because one variant stores pixels. */
static uint64_t sample_size(const struct rewrite_sample *sample)
{
	uint64_t size = 0;

	for (size_t i = 0; i < sample->num_values; i++) {
		const struct writer_value *v = &sample->values[i].read;

		size += max_u64(v->size, (uint64_t)3 * v->width * v->height);
	}
	return size;
}

static int read_samples(struct variant_source *s, size_t wanted)
{
	int64_t end = clock_ns() + READ_S * INT64_C(1000000000);
	uint64_t size = 0;

	for (size_t k = 0; k < wanted && size < SIZE_MAX_READ; k++) {
		/* A server may be far away. */
		if (k >= SAMPLES_LEAST && clock_ns() > end)
			break;
		uint64_t sample = k * (s->dataset->format.samples / wanted);
		int r = rewrite_read(s->dataset, sample, &s->samples[k]);

		if (r)
			return r;
		s->num_samples++;
		size += sample_size(s->samples[k]);
	}
	return 0;
}

static void describe_images(const struct variant_source *s, struct evidence *e)
{
	double images = 0, jpegs = 0, width = 0, height = 0;

	for (size_t k = 0; k < s->num_samples; k++) {
		const struct rewrite_sample *sample = s->samples[k];

		for (size_t i = 0; i < sample->num_values; i++) {
			const struct writer_value *v = &sample->values[i].read;

			if (!is_image(&sample->values[i]))
				continue;
			images++;
			jpegs += v->mode == BETON_MODE_JPG;
			width += v->width;
			height += v->height;
		}
	}
	e->images = s->num_samples ? images / (double)s->num_samples : 0;
	if (images <= 0)
		return;
	e->jpegs = jpegs / images;
	e->width = width / images;
	e->height = height / images;
}

/* If a dataset cannot be copied, it has no variants. */
static bool can_be_written(const struct dataset *ds)
{
	for (uint32_t i = 0; i < ds->format.num_fields; i++) {
		if (!rewrite_can_copy(&ds->format.fields[i]))
			return false;
	}
	return ds->format.samples > 0;
}

int variant_source_open(const char *path, size_t samples, struct log *log,
			struct evidence *e, struct variant_source **out)
{
	struct variant_source *s = calloc(1, sizeof(*s));
	int r = s ? joined_open(path, NULL, log, &s->dataset) : -ENOMEM;

	if (!r && !can_be_written(s->dataset))
		r = -EOPNOTSUPP;
	if (!r) {
		samples = min_u64(samples, s->dataset->format.samples);
		s->log = log;
		s->samples = calloc(samples + 1, sizeof(*s->samples));
		r = s->samples ? 0 : -ENOMEM;
	}
	r = r ? r : codec_open(&s->codec);
	r = r ? r : codec_recoder_open(&s->recoder);
	r = r ? r : resampler_open(&s->resampler);
	r = r ? r : read_samples(s, samples);
	if (r) {
		variant_source_close(s);
		return r;
	}
	describe_images(s, e);
	*out = s;
	return 0;
}

void variant_source_close(struct variant_source *s)
{
	if (!s)
		return;
	for (size_t k = 0; k < s->num_samples; k++)
		rewrite_free(s->samples[k]);
	free(s->samples);
	codec_close(s->codec);
	codec_recoder_close(s->recoder);
	resampler_close(s->resampler);
	dataset_close(s->dataset);
	free(s);
}

/* --- one image ----------------------------------------------------------- */

/* Changes an image. The caller frees *made, the new bytes; NULL: no change. */
typedef int change_fn(struct variant_source *s, const struct evidence *e,
		      struct writer_value *v, uint8_t **made);

static int keep_image(struct variant_source *s, const struct evidence *e,
		      struct writer_value *v, uint8_t **made)
{
	(void)s;
	(void)e;
	(void)v;
	*made = NULL;
	return 0;
}

static int recode_image(struct variant_source *s, const struct evidence *e,
			struct writer_value *v, uint8_t **made)
{
	struct recoded recoded;

	(void)e;
	*made = NULL;
	if (v->mode != BETON_MODE_JPG ||
	    codec_recode(s->recoder, v->bytes, v->size, RECODE_AUTO, &s->codes,
			 &recoded))
		return 0;
	*made = recoded.bytes;
	v->size = recoded.size;
	return 0;
}

static int decode_image(struct variant_source *s, const struct writer_value *v,
			struct image *out)
{
	struct rect all = { 0, 0, v->width, v->height };
	size_t size = (size_t)3 * v->width * v->height;
	int r;

	*out = (struct image){ NULL, v->width, v->height,
			       (size_t)3 * v->width };
	if (!size || size > PIXELS_MAX)
		return -EFBIG;
	if (v->mode != BETON_MODE_JPG && v->size != size)
		return -EBADMSG;
	out->pixels = malloc(size);
	if (!out->pixels)
		return -ENOMEM;
	if (v->mode != BETON_MODE_JPG) {
		memcpy(out->pixels, v->bytes, size);
		return 0;
	}
	r = codec_decode(s->codec, v->bytes, v->size, &all, out);
	if (r)
		free(steal(out->pixels));
	return r;
}

/* If an image cannot be decoded, it does not change. */
static int to_pixels(struct variant_source *s, const struct evidence *e,
		     struct writer_value *v, uint8_t **made)
{
	struct image image;

	(void)e;
	*made = NULL;
	if (decode_image(s, v, &image))
		return 0;
	*made = image.pixels;
	v->size = (uint64_t)3 * v->width * v->height;
	v->mode = BETON_MODE_RAW;
	return 0;
}

static int encode_image(struct variant_source *s, const struct image *image,
			unsigned quality, struct writer_value *v,
			uint8_t **made)
{
	size_t size;
	int r = codec_encode(s->codec, image, quality, made, &size);

	if (r)
		return r;
	v->size = size;
	v->mode = BETON_MODE_JPG;
	v->width = (uint16_t)image->width;
	v->height = (uint16_t)image->height;
	return 0;
}

static int to_quality(struct variant_source *s, const struct evidence *e,
		      struct writer_value *v, uint8_t **made)
{
	struct image image;
	int r;

	*made = NULL;
	if (decode_image(s, v, &image))
		return 0;
	r = encode_image(s, &image, e->jpegs > 0 ? QUALITY_LOW : QUALITY, v,
			 made);
	free(image.pixels);
	return r;
}

/* Resizes an image as mkfs.beton --max-resolution does. */
static int to_size(struct variant_source *s, const struct evidence *e,
		   struct writer_value *v, uint8_t **made)
{
	double side = fmax(v->width, v->height), by = e->resized_to / side;
	struct image image, small;
	int r = 0;

	*made = NULL;
	if (by >= 1 || decode_image(s, v, &image))
		return 0;
	small.width = (uint32_t)fmax(floor(by * v->width), 1);
	small.height = (uint32_t)fmax(floor(by * v->height), 1);
	small.stride = (size_t)3 * small.width;
	small.pixels = malloc(small.stride * small.height);
	if (!small.pixels)
		r = -ENOMEM;
	r = r ? r : resample(s->resampler, INTERPOLATION_AREA, &image, &small);
	r = r ? r : encode_image(s, &small, QUALITY, v, made);
	free(small.pixels);
	free(image.pixels);
	return r;
}

/* --- a whole dataset ----------------------------------------------------- */

static void count_symbols(struct variant_source *s)
{
	struct symbols sum = { 0 };

	for (size_t k = 0; k < s->num_samples; k++) {
		const struct rewrite_sample *sample = s->samples[k];

		for (size_t i = 0; i < sample->num_values; i++) {
			const struct rewrite_value *v = &sample->values[i];

			if (is_image(v) && v->read.mode == BETON_MODE_JPG)
				codec_count(s->recoder, v->bytes, v->read.size,
					    &sum);
		}
	}
	symbols_make_codes(&sum, true, &s->codes);
	s->counted = true;
}

static int write_sample(struct variant_source *s, const struct evidence *e,
			change_fn *change, struct writer *w,
			struct rewrite_sample *sample)
{
	int r = 0;

	for (size_t i = 0; i < sample->num_values && !r; i++) {
		struct writer_value *v = &sample->written[i];
		uint8_t *made = NULL;

		if (is_image(&sample->values[i]))
			r = change(s, e, v, &made);
		if (made)
			rewrite_replace(sample, i, made, v->size);
		s->written += v->size;
	}
	r = r ? r : rewrite_append(w, sample);
	rewrite_undo(sample);
	return r;
}

static int open_writer(struct variant_source *s, int fd, struct writer **out)
{
	const struct format *f = &s->dataset->format;
	cleanup_free struct writer_field *fields = NULL;
	uint64_t page = PAGE;
	int r = rewrite_fields(s->dataset, &fields);

	if (r)
		return r;
	/* Pixels may need larger pages than the file has. */
	while (page < f->page_size || page < PIXELS_MAX)
		page *= 2;
	return writer_open_to(fd, "variant", fields, f->num_fields,
			      s->num_samples, (uint32_t)page, s->log, out);
}

/* Returns NULL if the variant would be the same. */
static change_fn *change_of(enum variant v, struct evidence *e)
{
	double side = fmax(e->width, e->height);

	switch (v) {
	case VARIANT_SAME:
		return keep_image;
	case VARIANT_OPTIMIZED:
		return e->jpegs > 0 ? recode_image : NULL;
	case VARIANT_RAW:
		return e->jpegs > 0 ? to_pixels : NULL;
	case VARIANT_QUALITY:
		return e->images > 0 ? to_quality : NULL;
	case VARIANT_RESIZED:
		e->resized_to = (unsigned)(e->resize_to * MARGIN_PERCENT / 100);
		return e->jpegs > 0 && e->resized_to &&
				       e->resized_to < 0.8 * side
			       ? to_size
			       : NULL;
	default:
		return NULL;
	}
}

int variant_write(struct variant_source *s, enum variant v, struct evidence *e,
		  int fd)
{
	change_fn *change = change_of(v, e);
	struct writer *w = NULL;
	int r;

	if (!change)
		return -ENODATA;
	if (v == VARIANT_OPTIMIZED && !s->counted)
		count_symbols(s);
	s->written = 0;
	r = open_writer(s, fd, &w);
	for (size_t k = 0; k < s->num_samples && !r; k++)
		r = write_sample(s, e, change, w, s->samples[k]);
	if (!r)
		r = writer_finish(&w);
	writer_abort(&w);
	return r;
}

size_t variant_samples(const struct variant_source *s)
{
	return s->num_samples;
}

double variant_bytes(const struct variant_source *s)
{
	return s->num_samples ? (double)s->written / (double)s->num_samples : 0;
}

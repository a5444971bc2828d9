/* SPDX-License-Identifier: Apache-2.0 */
/* Implements <beton/writer.h>: a writer of dataset files, and encoders for
   pixels. */
#include "beton/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/float_mode.h"
#include "fs/data/writer/append.h"
#include "fs/data/writer/merge.h"
#include "loader/image/codec/codec.h"
#include "loader/image/codec/marker.h"
#include "loader/image/resize/resample.h"
#include "loader/sized.h"

enum {
	PAGE_SIZE_DEFAULT = 8 << 20,
	QUALITY_DEFAULT = 90,
	SIDE_MAX = 65535,
	/* Smallest valid size of the options: the member `size` alone. */
	OPTIONS_MIN = offsetof(struct beton_writer_options, page_size),
	MERGE_OPTIONS_MIN = offsetof(struct beton_merge_options, page_size),
};

struct beton_writer {
	struct log log;
	struct appender *file;
	size_t num_fields;
	struct writer_value *values; /* the values of one sample */
};

/* Copies a field's description. Treats a dtype or shape that is too long as
   invalid. */
static int copy_field(const struct beton_writer_field *from,
		      struct writer_field *to)
{
	*to = (struct writer_field){ .name = from->name,
				     .type = from->type,
				     .ndim = from->ndim,
				     .classes = from->classes,
				     .num_classes = from->num_classes };
	if (from->dtype)
		snprintf(to->dtype, sizeof(to->dtype), "%s", from->dtype);
	if (from->ndim > BETON_MAX_NDIM ||
	    (from->dtype && strlen(from->dtype) >= sizeof(to->dtype)))
		return -EINVAL;
	for (uint32_t i = 0; i < from->ndim; i++)
		to->shape[i] = from->shape[i];
	return 0;
}

static int open_file(struct beton_writer *w, const char *path,
		     const struct beton_writer_field *fields, uint64_t samples,
		     const struct beton_writer_options *o)
{
	cleanup_free struct writer_field *own =
		calloc(w->num_fields + 1, sizeof(*own));
	int r = 0;

	w->values = calloc(w->num_fields + 1, sizeof(*w->values));
	if (!own || !w->values)
		return -ENOMEM;
	for (size_t i = 0; i < w->num_fields && !r; i++)
		r = copy_field(&fields[i], &own[i]);
	if (r) {
		log_error(&w->log, "%s: no such type or shape", path);
		return r;
	}
	return appender_open(
		&(struct appender_setup){
			.path = path,
			.fields = own,
			.num_fields = w->num_fields,
			.num_samples = samples,
			.page_size = o->page_size || o->append
					     ? o->page_size
					     : PAGE_SIZE_DEFAULT,
			.exists = o->append != 0,
			.log = &w->log,
		},
		&w->file);
}

int beton_writer_open(const char *path, const struct beton_writer_field *fields,
		      size_t num_fields, uint64_t samples,
		      const struct beton_writer_options *options,
		      struct beton_writer **out)
{
	struct beton_writer_options o;
	struct beton_writer *w;
	int r = sized_take(&o, sizeof(o), options, OPTIONS_MIN);

	if (r)
		return r;
	if (num_fields > UINT16_MAX)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	log_init(&w->log, o.log, o.log_arg);
	w->num_fields = num_fields;
	r = open_file(w, path, fields, samples, &o);
	if (r)
		beton_writer_abort(w);
	else
		*out = w;
	return r;
}

int beton_writer_append(struct beton_writer *w,
			const struct beton_writer_value *values)
{
	for (size_t i = 0; i < w->num_fields; i++)
		w->values[i] = (struct writer_value){
			.bytes = values[i].bytes,
			.size = values[i].size,
			.integer = values[i].integer,
			.real = values[i].real,
			.mode = values[i].mode,
			.width = values[i].width,
			.height = values[i].height,
		};
	return appender_append(w->file, w->values);
}

int beton_writer_finish(struct beton_writer *w)
{
	int r = appender_finish(&w->file);

	beton_writer_abort(w);
	return r;
}

void beton_writer_abort(struct beton_writer *w)
{
	if (!w)
		return;
	appender_abort(&w->file);
	log_fini(&w->log);
	free(w->values);
	free(w);
}

/* --- images --- */

/* The caller owns the pixels of *out. */
static int shrink(const struct image *image, uint32_t limit, struct image *out)
{
	struct resampler *resampler;
	int r = resampler_open(&resampler);
	fenv_t mode;

	if (r)
		return r;
	float_mode_begin(&mode);
	resample_limit(image, limit, out);
	out->pixels = malloc(out->stride * out->height);
	r = out->pixels ? resample(resampler, INTERPOLATION_AREA, image, out)
			: -ENOMEM;
	float_mode_end(&mode);
	resampler_close(resampler);
	return r;
}

static int store_jpeg(const struct image *image, unsigned quality,
		      struct beton_writer_value *out)
{
	struct codec *codec;
	uint8_t *bytes;
	size_t size;
	int r = codec_open(&codec);

	if (r)
		return r;
	r = codec_encode(codec, image, quality, &bytes, &size);
	codec_close(codec);
	if (r)
		return r;
	out->bytes = bytes;
	out->size = size;
	return 0;
}

static int store_raw(const struct image *image, struct beton_writer_value *out)
{
	uint64_t size = 3 * (uint64_t)image->width * image->height;
	void *bytes = malloc(size);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, image->pixels, size);
	out->bytes = bytes;
	out->size = size;
	return 0;
}

int beton_writer_encode(const struct beton_writer_recipe *recipe,
			const struct beton_writer_image *from,
			struct beton_writer_value *out)
{
	const uint32_t limit = recipe->max_resolution;
	const uint32_t quality =
		recipe->quality ? recipe->quality : QUALITY_DEFAULT;
	struct image image = { (uint8_t *)from->pixels, from->width,
			       from->height, 3 * (size_t)from->width };
	struct image scaled = { .pixels = NULL };
	struct beton_writer_value v = { .mode = recipe->mode };
	int r = 0;

	if (!from->width || !from->height || from->width > SIDE_MAX ||
	    from->height > SIDE_MAX || quality > 100 ||
	    (recipe->mode != BETON_MODE_JPG && recipe->mode != BETON_MODE_RAW))
		return -EINVAL;
	if (limit && max_u64(image.width, image.height) > limit) {
		r = shrink(&image, limit, &scaled);
		image = scaled;
	}
	if (!r)
		r = recipe->mode == BETON_MODE_JPG
			    ? store_jpeg(&image, quality, &v)
			    : store_raw(&image, &v);
	v.width = (uint16_t)image.width;
	v.height = (uint16_t)image.height;
	free(scaled.pixels);
	if (!r)
		*out = v;
	return r;
}

int beton_writer_keep(const void *bytes, uint64_t size,
		      struct beton_writer_value *out)
{
	struct codec_info info;
	struct codec *codec;
	int r = codec_open(&codec);

	if (r)
		return r;
	r = codec_probe(codec, bytes, size, &info);
	codec_close(codec);
	if (r || info.color == CODEC_CMYK || info.width > SIDE_MAX ||
	    info.height > SIDE_MAX)
		return r ? r : -EBADMSG;
	if (!codec_marker_ends(bytes, size))
		return -ENODATA;
	*out = (struct beton_writer_value){ .bytes = bytes,
					    .size = size,
					    .mode = BETON_MODE_JPG,
					    .width = (uint16_t)info.width,
					    .height = (uint16_t)info.height };
	return 0;
}

int beton_merge(const char *const *paths, size_t num_paths, const char *path,
		const struct beton_merge_options *options, uint64_t *samples)
{
	struct beton_merge_options o;
	struct merge_options merge;
	struct merge_result result;
	struct log log;
	int r = sized_take(&o, sizeof(o), options, MERGE_OPTIONS_MIN);

	if (r)
		return r;
	if (!num_paths || o.keep_numbers < 0 || o.keep_numbers > 1)
		return -EINVAL;
	log_init(&log, o.log, o.log_arg);
	merge = (struct merge_options){
		.page_size = o.page_size,
		.keep_numbers = o.keep_numbers,
		.progress = o.progress,
		.arg = o.progress_arg,
	};
	r = merge_files(paths, num_paths, path, &merge, &log, &result);
	log_fini(&log);
	if (!r && samples)
		*samples = result.samples;
	return r;
}

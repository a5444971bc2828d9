/* SPDX-License-Identifier: Apache-2.0 */
/* Implements <beton/dataset.h> with a dataset of the engine and a pool of
   codecs for its images. */
#include "beton/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/value.h"
#include "loader/image/codec/codec.h"
#include "loader/sized.h"

enum {
	ERROR_SIZE = 1024,
	/* Smallest valid size of the options: the member `size` alone. */
	OPTIONS_MIN = offsetof(struct beton_dataset_options, log),
};

/* A codec. A thread takes it out of the pool while it decodes. */
struct pooled {
	struct codec *codec;
	struct pooled *next;
};

struct beton_dataset {
	struct log log;
	beton_log_fn *user_log;
	void *user_log_arg;
	struct dataset *ds;
	pthread_mutex_t lock; /* guards the idle codecs */
	struct pooled *idle;
	char last_logged[ERROR_SIZE]; /* errors of beton_dataset_open() */
	bool is_open;
};

static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	struct beton_dataset *d = arg;

	if (level == BETON_LOG_ERROR && !d->is_open)
		snprintf(d->last_logged, sizeof(d->last_logged), "%s", message);
	if (d->user_log)
		d->user_log(d->user_log_arg, level, message);
}

static int start(struct beton_dataset *d, const char *path,
		 const char *storage_options)
{
	struct source_options storage;
	int r = source_options_read(storage_options, &d->log, &storage);

	if (!r)
		r = joined_open(path, &storage, &d->log, &d->ds);
	source_options_fini(&storage);
	d->is_open = !r;
	return r;
}

static struct beton_dataset *create(const struct beton_dataset_options *o)
{
	struct beton_dataset *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->user_log = o->log;
	d->user_log_arg = o->log_arg;
	log_init(&d->log, on_log, d);
	d->log.every = true;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

int beton_dataset_open(const char *path,
		       const struct beton_dataset_options *options,
		       struct beton_dataset **out)
{
	struct beton_dataset_options o;
	struct beton_dataset *d;
	int r = sized_take(&o, sizeof(o), options, OPTIONS_MIN);

	if (r)
		return r;
	d = create(&o);
	r = d ? start(d, path, o.storage_options) : -ENOMEM;
	if (!r) {
		*out = d;
		return 0;
	}
	if (o.error && o.error_size)
		snprintf(o.error, o.error_size, "%s",
			 d && d->last_logged[0] ? d->last_logged
						: strerror(-r));
	beton_dataset_close(d);
	return r;
}

void beton_dataset_close(struct beton_dataset *d)
{
	struct pooled *p, *next;

	if (!d)
		return;
	LL_FOREACH_SAFE(d->idle, p, next)
	{
		codec_close(p->codec);
		free(p);
	}
	dataset_close(d->ds);
	pthread_mutex_destroy(&d->lock);
	log_fini(&d->log);
	free(d);
}

uint64_t beton_dataset_samples(const struct beton_dataset *d)
{
	return d->ds->format.samples;
}

const uint8_t *beton_dataset_fingerprint(const struct beton_dataset *d)
{
	return d->ds->fingerprint;
}

int beton_dataset_field(const struct beton_dataset *d, uint32_t field,
			struct beton_field *out)
{
	const struct field *f;

	if (field >= d->ds->format.num_fields)
		return -ENOENT;
	f = &d->ds->format.fields[field];
	*out = (struct beton_field){
		.name = f->name,
		.stem = f->stem,
		.kind = f->type->name,
		.type = f->type->type,
		.dtype = f->dtype,
		.ndim = field_is_array(f) ? f->ndim : 0,
		.shape = f->shape,
		.unusable = f->unusable,
		.classes = f->classes ? f->classes->names : NULL,
		.num_classes = f->classes ? f->classes->num : 0,
	};
	return 0;
}

int beton_dataset_value(struct beton_dataset *d, uint32_t field,
			uint64_t sample, struct beton_value *out)
{
	const struct field *f;
	struct value v;
	int r;

	if (field >= d->ds->format.num_fields ||
	    sample >= d->ds->format.samples)
		return -ENOENT;
	f = &d->ds->format.fields[field];
	r = dataset_value_at(d->ds, field, sample, &v);
	if (r)
		return r;
	*out = (struct beton_value){
		.sample = sample,
		.field = field,
		.mode = v.mode,
		.width = v.width,
		.height = v.height,
		.off = v.off,
		.size = v.size,
	};
	if (field_is_scalar(f))
		out->size = 0;
	if (f->type->integer)
		out->integer = f->type->integer(v.scalar);
	if (f->type->real)
		out->real = f->type->real(v.scalar);
	return 0;
}

/* Checks that beton_dataset_value() can have returned the value. */
static bool is_value(const struct beton_dataset *d, const struct beton_value *v)
{
	return v->field < d->ds->format.num_fields &&
	       v->sample < d->ds->format.samples &&
	       !d->ds->format.fields[v->field].unusable;
}

static void complain(struct beton_dataset *d, const struct beton_value *v,
		     const char *why)
{
	typedef unsigned long long ull;

	log_error(&d->log, "%s: sample %llu field %s: %s (%llu bytes at %llu)",
		  dataset_path(d->ds), (ull)v->sample,
		  d->ds->format.fields[v->field].stem, why, (ull)v->size,
		  (ull)v->off);
}

int beton_dataset_read(struct beton_dataset *d, const struct beton_value *v,
		       void *to)
{
	const struct value at = { .off = v->off,
				  .size = v->size,
				  .mode = v->mode,
				  .width = v->width,
				  .height = v->height };
	struct sample_file file;
	ssize_t n;

	if (!is_value(d, v) || field_is_scalar(&d->ds->format.fields[v->field]))
		return -EINVAL;
	sample_file_init(&file, d->ds, v->field, &at);
	n = vfile_read(&file.vfile, to, v->size, file.head_size, NULL, NULL);
	return n < 0 ? (int)n : 0;
}

/* --- decoding --- */

static int take_codec(struct beton_dataset *d, struct pooled **out)
{
	struct pooled *p;
	int r;

	pthread_mutex_lock(&d->lock);
	p = d->idle;
	if (p)
		LL_DELETE(d->idle, p);
	pthread_mutex_unlock(&d->lock);
	if (!p) {
		p = calloc(1, sizeof(*p));
		r = p ? codec_open(&p->codec) : -ENOMEM;
		if (r) {
			free(p);
			return r;
		}
	}
	*out = p;
	return 0;
}

static void give_codec_back(struct beton_dataset *d, struct pooled *p)
{
	scoped_lock(&d->lock);
	LL_PREPEND(d->idle, p);
}

static int decode(struct beton_dataset *d, struct codec *codec,
		  const struct beton_value *v, const uint8_t *bytes, void *to)
{
	struct image image = { .pixels = to,
			       .width = v->width,
			       .height = v->height,
			       .stride = 3 * (size_t)v->width };
	const struct rect whole = { 0, 0, v->width, v->height };
	struct codec_info info;
	int r = codec_probe(codec, bytes, v->size, &info);

	if (!r && (info.width != v->width || info.height != v->height)) {
		complain(d, v, "the JPEG is of another size");
		return -EBADMSG;
	}
	if (!r)
		r = codec_decode(codec, bytes, v->size, &whole, &image);
	if (r)
		complain(d, v, codec_message(codec));
	return r;
}

int beton_dataset_decode(struct beton_dataset *d, const struct beton_value *v,
			 void *to)
{
	cleanup_free uint8_t *bytes = NULL;
	struct pooled *p;
	int r;

	if (!is_value(d, v) || !field_is_image(&d->ds->format.fields[v->field]))
		return -EINVAL;
	if (v->mode == BETON_MODE_RAW)
		return beton_dataset_read(d, v, to);
	bytes = malloc(v->size + 1);
	r = bytes ? beton_dataset_read(d, v, bytes) : -ENOMEM;
	if (!r)
		r = take_codec(d, &p);
	if (r)
		return r;
	r = decode(d, p->codec, v, bytes, to);
	give_codec_back(d, p);
	return r;
}

int beton_dataset_column(struct beton_dataset *d, uint32_t field,
			 uint64_t first, uint64_t n, void *to)
{
	const struct field *f;
	struct column_file file;
	uint64_t end;
	ssize_t r;

	if (field >= d->ds->format.num_fields)
		return -EINVAL;
	f = &d->ds->format.fields[field];
	if (!field_is_scalar(f))
		return -EINVAL;
	if (f->unusable)
		return -EOPNOTSUPP;
	if (!add_ok(first, n, &end) || end > d->ds->format.samples)
		return -ENOENT;
	if (!n)
		return 0;
	column_file_init(&file, d->ds, field);
	r = vfile_read(&file.vfile, to, f->meta_size * n,
		       file.head_size + f->meta_size * first, NULL, NULL);
	return r < 0 ? (int)r : 0;
}

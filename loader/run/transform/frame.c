/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/entry_store.h"
#include "loader/image/jpeg/upsample.h"
#include "loader/image/resize/planar.h"
#include "loader/run/transform/scanlines.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

/*
 * Number of rows to resize at a time. They fit into the CPU's first-level cache
 * until the pointwise stage reads them.
 */
enum { BAND_ROWS = 4 };

struct frame {
	const struct pipeline_value *value;
	enum quality quality;
	uint64_t *decode_ns;
	bool is_baseline;	     /* baseline JPEG, described by `jpeg` */
	struct entry_store *entries; /* of the JPEG; NULL: keep none */
	uint32_t field;
	uint64_t id;
	bool in_memory; /* `image` holds pixels */
	struct image image;
	const struct baseline_plane *whole; /* all planes of `jpeg`, or NULL */
	struct rect view;		    /* of the value, or of `image` */
	bool mirror;  /* the view's left and right are exchanged */
	bool resizes; /* resize the view by `resize` */
	struct resize resize;
	bool started;  /* rows have started, */
	bool planes;   /* rows are from `planar`, else from `lines` */
	uint32_t next; /* next row of the result */
	struct scanlines *lines;
	struct resampler *resampler;
	struct baseline *baseline;
	struct baseline_image jpeg;
	struct planar *planar;
	struct buffer band;
	struct buffer buffers[2]; /* a resize reads one and fills the other */
	unsigned turn;
	char message[192];
};

int frame_open(struct frame **out)
{
	struct frame *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (!r)
		r = scanlines_open(&f->lines);
	if (!r)
		r = resampler_open(&f->resampler);
	if (!r)
		r = baseline_open(&f->baseline);
	if (!r)
		r = planar_open(&f->planar);
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
	scanlines_close(f->lines);
	resampler_close(f->resampler);
	baseline_close(f->baseline);
	planar_close(f->planar);
	buffer_fini(&f->band);
	buffer_fini(&f->buffers[0]);
	buffer_fini(&f->buffers[1]);
	free(f);
}

const char *frame_message(const struct frame *f)
{
	return f->message;
}

/* Returns the result `r` of a lines_*() function, and copies its message. */
static int lines_result(struct frame *f, int r)
{
	if (r)
		snprintf(f->message, sizeof(f->message), "%s",
			 r == -ENOMEM ? strerror(ENOMEM)
				      : scanlines_message(f->lines));
	return r;
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
	/* Not owned, and never written. */
	f->image = (struct image){ (uint8_t *)(uintptr_t)v->bytes, v->width,
				   v->height, 3 * (size_t)v->width };
	f->in_memory = true;
	return 0;
}

/* Reads the header only. */
static int start_jpeg(struct frame *f)
{
	const struct pipeline_value *v = f->value;
	uint32_t width, height;
	int r = 0;

	f->is_baseline =
		!baseline_header(f->baseline, v->bytes, v->size, &f->jpeg);
	width = f->jpeg.width;
	height = f->jpeg.height;
	if (!f->is_baseline)
		r = lines_result(f, scanlines_probe(f->lines, v->bytes, v->size,
						    &width, &height));
	if (r || (width == v->width && height == v->height))
		return r;
	snprintf(f->message, sizeof(f->message),
		 "the JPEG is %ux%u, the dataset states %ux%u", width, height,
		 v->width, v->height);
	return -EINVAL;
}

int frame_start(struct frame *f, const struct pipeline_value *value,
		enum quality quality, uint64_t *decode_ns)
{
	f->value = value;
	f->quality = quality;
	f->decode_ns = decode_ns;
	f->is_baseline = false;
	f->entries = NULL;
	f->in_memory = false;
	f->whole = NULL;
	f->mirror = false;
	f->resizes = false;
	f->started = false;
	f->view =
		(struct rect){ .width = value->width, .height = value->height };
	if (!value->width || !value->height) {
		snprintf(f->message, sizeof(f->message),
			 "an empty image, %ux%u", value->width, value->height);
		return -EINVAL;
	}
	return value->mode == BETON_MODE_RAW ? start_raw(f) : start_jpeg(f);
}

void frame_keep_entries(struct frame *f, struct entry_store *store,
			uint32_t field, uint64_t id)
{
	f->entries = store;
	f->field = field;
	f->id = id;
}

/* Continues with the cached image. */
static void take_up(struct frame *f, const struct cached_image *kept)
{
	f->is_baseline = kept->has_planes;
	f->jpeg = kept->jpeg;
	f->whole = kept->has_planes ? kept->planes : NULL;
	f->in_memory = !kept->has_planes;
	f->image = kept->image;
	f->view = kept->view;
	f->mirror = kept->mirror;
	f->resizes = false;
	f->started = false;
}

bool frame_resume(struct frame *f, const struct pipeline_value *value,
		  enum quality quality, const struct cached_image *kept,
		  uint64_t *decode_ns)
{
	if (kept->width != value->width || kept->height != value->height)
		return false;
	f->value = value;
	f->quality = quality;
	f->decode_ns = decode_ns;
	take_up(f, kept);
	return true;
}

void frame_crop(struct frame *f, const struct rect *part)
{
	if (f->resizes)
		rect_narrow(&f->resize.part, f->resize.mirror, part);
	else
		rect_narrow(&f->view, f->mirror, part);
}

void frame_mirror(struct frame *f)
{
	bool *mirror = f->resizes ? &f->resize.mirror : &f->mirror;

	*mirror = !*mirror;
}

static int no_memory(struct frame *f, uint32_t width, uint32_t height)
{
	snprintf(f->message, sizeof(f->message), "no memory for %ux%u pixels",
		 width, height);
	return -ENOMEM;
}

/* The record of entry points, if this is not the whole image; or NULL. */
static struct entry_record *find_record(struct frame *f,
					const struct rect *part,
					const struct baseline_image *image)
{
	if (!f->entries ||
	    (part->width == image->width && part->height == image->height))
		return NULL;
	return entry_store_get(f->entries, f->field, f->id, &f->jpeg);
}

static int decode_part(struct frame *f, const struct baseline_image *image,
		       const struct rect *part,
		       struct baseline_plane planes[BASELINE_COMPONENTS])
{
	struct entry_record *record = find_record(f, part, image);
	struct entry_index index;
	int r;

	if (record)
		return baseline_decode_recorded(f->baseline, image, part, 1,
						record, planes);
	r = baseline_stored_index(f->baseline, &f->jpeg, &index);
	if (r == -ENOMEM)
		return r;
	return baseline_decode(f->baseline, image, part, 1, r ? NULL : &index,
			       planes);
}

/*
 * Decodes the planes of a part of a baseline JPEG, described by `image`.
 * -ENOTSUP, -ENOMEM
 */
static int decode_planes(struct frame *f, const struct baseline_image *image,
			 const struct rect *part,
			 struct baseline_plane planes[BASELINE_COMPONENTS])
{
	uint64_t start = f->decode_ns ? stage_now_ns() : 0;
	int r = decode_part(f, image, part, planes);

	if (f->decode_ns)
		*f->decode_ns += stage_now_ns() - start;
	return r;
}

/*
 * Decodes the planes of a part like decode_planes(), or selects the part if all
 * planes are present. All planes always have full size.
 */
static int find_planes(struct frame *f, const struct baseline_image *image,
		       const struct rect *part,
		       struct baseline_plane planes[BASELINE_COMPONENTS])
{
	if (!f->whole)
		return decode_planes(f, image, part, planes);
	baseline_part(&f->jpeg, f->whole, part, 1, planes);
	return 0;
}

/* Resizes planes. Returns -ENOTSUP if only pixels support the resize. */
static int start_planes(struct frame *f)
{
	struct planar_view view = { f->view, f->mirror, 1 };
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct baseline_image image;
	struct rect needs;
	int r;

	if (f->in_memory || !f->is_baseline || !f->resizes ||
	    f->quality == QUALITY_EXACT)
		return -ENOTSUP;
	if (f->quality == QUALITY_DRAFT)
		view.reduced = planar_reduction(&f->resize);
	if (!planar_needs(&f->resize, &view, &needs))
		return -ENOTSUP;
	baseline_reduce(&f->jpeg, view.reduced, &image);
	r = find_planes(f, &image, &needs, planes);
	if (!r)
		r = planar_start(f->planar, &f->resize, &view, &image, planes);
	return r;
}

/* Starts rows of pixels of a part of the value. */
static int start_pixels(struct frame *f, const struct rect *part)
{
	const struct pipeline_value *v = f->value;
	struct baseline_plane planes[BASELINE_COMPONENTS];
	int r = -ENOTSUP;

	if (f->in_memory) {
		scanlines_of_image(f->lines, &f->image, part);
		return 0;
	}
	if (f->is_baseline && upsample_can(&f->jpeg))
		r = find_planes(f, &f->jpeg, part, planes);
	if (!r)
		r = scanlines_of_planes(f->lines, &f->jpeg, planes, part);
	if (!r || r == -ENOMEM)
		return r;
	/* If the built-in decoder refuses a file, libjpeg decides. */
	return lines_result(f, scanlines_of_jpeg(f->lines, v->bytes, v->size,
						 part, f->decode_ns));
}

static int start_lines(struct frame *f)
{
	struct rect part = f->view, needs;
	int r = 0;

	if (f->resizes) {
		r = resample_start(f->resampler, &f->resize, &needs);
		if (r)
			return r;
		rect_narrow(&part, f->mirror, &needs);
	}
	return start_pixels(f, &part);
}

/* Starts the rows, after all crops, mirrors and resizes. */
static int start_rows(struct frame *f)
{
	int r = start_planes(f);

	f->planes = !r;
	f->started = true;
	f->next = 0;
	if (r && r != -ENOMEM)
		r = start_lines(f);
	return r == -ENOMEM ? no_memory(f, f->view.width, f->view.height) : r;
}

static int row_of(void *arg, uint32_t y, const uint8_t **pixels)
{
	struct frame *f = arg;

	return scanlines_row(f->lines, y, f->mirror, pixels);
}

/* Copies all rows of the result to one image. */
static void planes_to_pixels(struct frame *f, const struct image *out)
{
	uint8_t *to = out->pixels;
	struct planar_rows in;

	for (planar_next(f->planar, &in); in.rows; planar_next(f->planar, &in))
		for (size_t y = 0; y < in.rows; y++)
			for (size_t x = 0; x < out->width; x++)
				for (unsigned c = 0; c < 3; c++)
					*to++ = in.channel[c]
							  [y * in.stride + x];
}

/* Returns the next rows of the resize. */
static int resize_rows(struct frame *f, const struct image *out)
{
	const struct row_source source = { row_of, f };

	return lines_result(f, resample_rows(f->resampler, &source, out));
}

/* Runs the pending resize, row by row. */
static int fill_resized(struct frame *f, const struct image *out)
{
	if (!f->planes)
		return resize_rows(f, out);
	planes_to_pixels(f, out);
	return 0;
}

/* Runs the pending resize. Afterwards the frame consists of its pixels. */
static int settle(struct frame *f)
{
	struct buffer *b = &f->buffers[f->turn];
	struct rect *part = &f->resize.part;
	struct image out = { .width = part->width,
			     .height = part->height,
			     .stride = 3 * (size_t)part->width };
	uint64_t size;
	int r;

	if (!mul_ok(out.stride, out.height, &size) || buffer_reserve(b, size))
		return no_memory(f, out.width, out.height);
	out.pixels = b->bytes;
	r = start_rows(f);
	if (!r)
		r = fill_resized(f, &out);
	if (r)
		return r;
	f->turn = !f->turn;
	f->image = out;
	f->in_memory = true;
	f->view = (struct rect){ .width = out.width, .height = out.height };
	f->mirror = false;
	f->resizes = false;
	f->started = false;
	return 0;
}

/* --- keeping --- */

/* A form in which to cache an image: its size, and a function that fills it. */
struct keeping {
	uint64_t (*size)(const struct frame *f);
	int (*fill)(struct frame *f, struct cached_image *k);
};

static uint64_t size_of_resized(const struct frame *f)
{
	return cached_image_size_of_pixels(f->resize.part.width,
					   f->resize.part.height);
}

/*
 * Whether planes give exact rows. Otherwise only libjpeg does.
 */
static bool uses_planes(const struct frame *f)
{
	return !f->in_memory && f->is_baseline &&
	       (f->quality != QUALITY_EXACT || upsample_can(&f->jpeg));
}

static int decode_whole(struct frame *f,
			struct baseline_plane planes[BASELINE_COMPONENTS])
{
	uint64_t start = f->decode_ns ? stage_now_ns() : 0;
	struct entry_index index;
	int r = baseline_stored_index(f->baseline, &f->jpeg, &index);

	if (r != -ENOMEM)
		r = baseline_decode_whole(f->baseline, &f->jpeg,
					  r ? NULL : &index, planes);
	if (f->decode_ns)
		*f->decode_ns += stage_now_ns() - start;
	return r;
}

/*
 * Caches planes only if all of them are intact. Damage outside the current part
 * would change a later, larger part.
 */
static int keep_resized(struct frame *f, struct cached_image *k)
{
	struct baseline_plane planes[BASELINE_COMPONENTS];
	int r = 0;

	cached_image_take_pixels(k, f->resize.part.width,
				 f->resize.part.height);
	k->view = (struct rect){ .width = k->image.width,
				 .height = k->image.height };
	k->mirror = false;
	if (uses_planes(f)) {
		r = decode_whole(f, planes);
		/* Draft quality resizes reduced planes, which the cache does
		   not store. */
		if (!r && f->quality != QUALITY_DRAFT)
			f->whole = planes;
	}
	if (!r)
		r = start_rows(f);
	if (!r)
		r = fill_resized(f, &k->image);
	f->whole = NULL;
	return r;
}

static uint64_t size_of_planes(const struct frame *f)
{
	return cached_image_size_of_planes(&f->jpeg);
}

static int keep_planes(struct frame *f, struct cached_image *k)
{
	struct baseline_plane planes[BASELINE_COMPONENTS];
	int r = decode_whole(f, planes);

	if (!r)
		cached_image_take_planes(k, &f->jpeg, planes);
	return r;
}

static uint64_t size_of_pixels(const struct frame *f)
{
	return cached_image_size_of_pixels(f->value->width, f->value->height);
}

static int keep_pixels(struct frame *f, struct cached_image *k)
{
	const struct pipeline_value *v = f->value;
	struct rect whole = { .width = v->width, .height = v->height };
	uint8_t *to = (uint8_t *)(k + 1);
	struct image rows;
	int r = scanlines_of_jpeg(f->lines, v->bytes, v->size, &whole,
				  f->decode_ns);

	cached_image_take_pixels(k, v->width, v->height);
	while (!r && !(r = scanlines_next(f->lines, &rows)) && rows.height)
		for (uint32_t y = 0; y < rows.height; y++)
			to = mempcpy(to, rows.pixels + y * rows.stride,
				     k->image.stride);
	return r;
}

static const struct keeping RESIZED = { size_of_resized, keep_resized };
static const struct keeping PLANES = { size_of_planes, keep_planes };
static const struct keeping PIXELS = { size_of_pixels, keep_pixels };

/* NULL: caching has no benefit. */
static const struct keeping *what_to_keep(const struct frame *f)
{
	if (f->resizes)
		return &RESIZED;
	if (f->in_memory || f->quality == QUALITY_DRAFT)
		return NULL;
	return uses_planes(f) ? &PLANES : &PIXELS;
}

void frame_cache(struct frame *f, struct value_store *cache, uint64_t id)
{
	const struct keeping *what = what_to_keep(f);
	struct cached_image *k =
		what ? value_store_take(cache, id, what->size(f)) : NULL;
	int r;

	if (!k)
		return;
	*k = (struct cached_image){
		.width = f->value->width,
		.height = f->value->height,
		.view = f->view,
		.mirror = f->mirror,
	};
	r = what->fill(f, k);
	f->started = false;
	if (r) {
		value_store_give(cache, k);
		if (r != -ENOMEM)
			value_store_refuse(cache, id);
	} else if (!value_store_put(cache, k)) {
		take_up(f, k);
	}
}

int frame_resample(struct frame *f, enum interpolation how, struct size to)
{
	int r = f->resizes ? settle(f) : 0;

	if (r)
		return r;
	f->resizes = true;
	f->resize = (struct resize){
		.how = how,
		.from_width = f->view.width,
		.from_height = f->view.height,
		.to_width = to.width,
		.to_height = to.height,
		.part = { .width = to.width, .height = to.height },
	};
	return 0;
}

int frame_decode(struct frame *f)
{
	struct image rows;
	int r;

	if (f->in_memory)
		return 0;
	r = start_rows(f);
	while (!r && !f->planes &&
	       !(r = lines_result(f, scanlines_next(f->lines, &rows))) &&
	       rows.height)
		;
	return r;
}

/* Returns the next rows, resized if a resize is pending. */
static int next_rows(struct frame *f, struct image *out)
{
	const struct rect *part = &f->resize.part;
	size_t stride = 3 * (size_t)part->width;

	if (!f->resizes)
		return lines_result(f, scanlines_next(f->lines, out));
	if (buffer_reserve(&f->band, stride * BAND_ROWS))
		return no_memory(f, part->width, BAND_ROWS);
	*out = (struct image){
		.pixels = f->band.bytes,
		.width = part->width,
		.height = (uint32_t)min_u64(part->height - f->next, BAND_ROWS),
		.stride = stride,
	};
	return resize_rows(f, out);
}

static void planes_band(struct frame *f, struct band *band)
{
	struct planar_rows rows;

	planar_next(f->planar, &rows);
	*band = (struct band){
		.channel = { rows.channel[0], rows.channel[1],
			     rows.channel[2] },
		.step = 1,
		.stride = rows.stride,
		.y = f->next,
		.rows = rows.rows,
	};
}

static int pixels_band(struct frame *f, struct band *band)
{
	struct image rows;
	int r = next_rows(f, &rows);

	if (r)
		return r;
	*band = (struct band){
		.channel = { rows.pixels, rows.pixels + 1, rows.pixels + 2 },
		.step = 3,
		.stride = rows.stride,
		.y = f->next,
		.rows = rows.height,
	};
	return 0;
}

int frame_next(struct frame *f, struct band *band, bool *mirror)
{
	int r = f->started ? 0 : start_rows(f);

	if (!r && f->planes)
		planes_band(f, band);
	else if (!r)
		r = pixels_band(f, band);
	if (r)
		return r;
	/* A resize includes the mirroring. */
	*mirror = f->mirror && !f->resizes;
	f->next += band->rows;
	return 0;
}

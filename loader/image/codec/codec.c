/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/encode.h"
#include "loader/image/codec/error.h"
#include "loader/image/codec/exif.h"
#include "loader/image/codec/header.h"
#include "loader/image/codec/marker.h"
#include "loader/image/codec/source.h"
#include "loader/util/gray.h"
#include "loader/util/scratch.h"

enum {
	/* Most scans of a file. Each costs a pass over all blocks; encoders
	   write about ten. */
	SCANS_MAX = 500,
	/* Least columns of a strip: eight chroma samples of half width. */
	STRIP_MIN = 16,
};

/*
 * The part of a row that libjpeg decodes, in pixels. It contains the
 * rectangle's.
 */
struct strip {
	JDIMENSION x;
	JDIMENSION width;
};

struct codec {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_progress_mgr progress;
	struct codec_error *error;
	struct codec_source *source;
	struct codec_encoder *encoder;
	struct scratch rows; /* CODEC_ROWS of them */
	/* State of the decoding in progress: */
	const uint8_t *bytes;
	size_t size;
	struct rect rect;
	bool gray; /* of the result */
	struct strip strip;
	uint32_t next; /* row of the rectangle */
	struct image *out;
};

static void count_scans(j_common_ptr cinfo)
{
	j_decompress_ptr jpeg = (j_decompress_ptr)cinfo;

	if (jpeg->input_scan_number > SCANS_MAX)
		ERREXIT(cinfo, JERR_BAD_PROGRESSION);
}

static int create(void *arg)
{
	struct codec *c = arg;

	jpeg_create_decompress(&c->jpeg);
	c->jpeg.src = codec_source_manager(c->source);
	c->jpeg.progress = &c->progress;
	/* Ignores the environment's JPEGMEM. */
	c->jpeg.mem->max_memory_to_use = CODEC_MEMORY_MAX;
	return 0;
}

int codec_open(struct codec **out)
{
	struct codec *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->progress.progress_monitor = count_scans;
	r = codec_error_open(&c->error);
	if (!r)
		r = codec_source_open(&c->source);
	if (!r) {
		c->jpeg.err = codec_error_manager(c->error);
		r = codec_error_run(c->error, create, c);
	}
	if (!r)
		r = codec_encoder_open(c->error, &c->encoder);
	if (r)
		codec_close(c);
	else
		*out = c;
	return r;
}

void codec_close(struct codec *c)
{
	if (!c)
		return;
	codec_encoder_close(c->encoder);
	jpeg_destroy_decompress(&c->jpeg);
	codec_source_close(c->source);
	codec_error_close(c->error);
	scratch_fini(&c->rows);
	free(c);
}

const char *codec_message(const struct codec *c)
{
	return codec_error_message(c->error);
}

/*
 * Resets the decoder first. libjpeg keeps the tables of one image for the next,
 * so a file without tables would decode with those of the previous one.
 */
static int read_header(struct codec *c)
{
	jpeg_destroy_decompress(&c->jpeg);
	create(c);
	codec_source_set(c->source, c->bytes, c->size);
	jpeg_read_header(&c->jpeg, TRUE);
	codec_source_past_header(c->source);

	return codec_header_check(&c->jpeg, c->bytes, c->size, c->error);
}

static int probe(void *arg)
{
	return read_header(arg);
}

/* The first warning that is not harmless. */
static unsigned orientation_of(const uint8_t *bytes, size_t size)
{
	struct marker_walk walk = { .bytes = bytes, .size = size };
	struct marker_segment s;
	unsigned o = 1;

	while (o == 1 && codec_marker_next(&walk, &s))
		if (s.marker == MARKER_APP1)
			o = exif_orientation(s.bytes, s.size);
	return o;
}

static enum codec_colour
color_of_header(const struct jpeg_decompress_struct *jpeg)
{
	if (jpeg->jpeg_color_space == JCS_CMYK ||
	    jpeg->jpeg_color_space == JCS_YCCK)
		return CODEC_CMYK;
	return jpeg->num_components == 1 ? CODEC_GRAY : CODEC_RGB;
}

int codec_probe(struct codec *c, const uint8_t *bytes, size_t size,
		struct codec_info *out)
{
	c->bytes = bytes;
	c->size = size;

	int r = codec_error_run(c->error, probe, c);

	if (!r)
		*out = (struct codec_info){
			.width = c->jpeg.image_width,
			.height = c->jpeg.image_height,
			.color = color_of_header(&c->jpeg),
			.baseline =
				codec_marker_frame(bytes, size) == MARKER_SOF0,
			.orientation = orientation_of(bytes, size),
		};
	jpeg_abort_decompress(&c->jpeg);
	return r;
}

/* Sets the decoder's options for each image: jpeg_read_header() resets them. */
static void choose(struct codec *c)
{
	c->jpeg.out_color_space = color_of_header(&c->jpeg) == CODEC_CMYK
					  ? JCS_CMYK
				  : c->gray ? JCS_GRAYSCALE
					    : JCS_RGB;
	c->jpeg.dct_method = JDCT_ISLOW;
	c->jpeg.do_fancy_upsampling = TRUE;
}

/*
 * libjpeg smooths progressive files that never send some coefficients over
 * their neighbors, which a crop does not have. coef_bits is the known precision
 * of each coefficient of each component; 0 is all of it.
 */
static bool is_smoothed(const struct jpeg_decompress_struct *jpeg)
{
	if (!jpeg->progressive_mode || !jpeg->coef_bits)
		return false;
	for (int i = 0; i < jpeg->num_components; i++)
		for (int k = 1; k < DCTSIZE2; k++)
			if (jpeg->coef_bits[i][k])
				return true;
	return false;
}

/* Tests compare crops with full decodes for these samplings only. */
static bool has_usual_sampling(const struct jpeg_decompress_struct *jpeg)
{
	for (int i = 0; i < jpeg->num_components; i++) {
		int h = jpeg->comp_info[i].h_samp_factor;
		int v = jpeg->comp_info[i].v_samp_factor;

		if (h == 3 || v == 3 || jpeg->max_h_samp_factor % h ||
		    jpeg->max_v_samp_factor % v)
			return false;
	}
	return true;
}

/* Reads rows that are not wanted. */
static void read_past(struct codec *c, uint32_t n)
{
	JSAMPROW row = c->rows.p;

	for (uint32_t i = 0; i < n; i++)
		jpeg_read_scanlines(&c->jpeg, &row, 1);
}

static int make_rows(struct codec *c)
{
	uint64_t row = (uint64_t)c->jpeg.output_width *
		       (uint64_t)c->jpeg.output_components;

	if (scratch_grow(&c->rows, row * CODEC_ROWS, 1))
		return codec_error_set(c->error, -ENOMEM, "out of memory");
	return 0;
}

/*
 * The columns to decode. A pixel of margin on both sides gives upsampling its
 * neighbors. libjpeg is wrong for fewer than three chroma samples. It widens
 * the strip to the left, to whole blocks.
 */
static struct strip strip_of(const struct rect *rect, uint32_t width)
{
	uint64_t left = rect->x - (rect->x > 0);
	uint64_t right = min_u64((uint64_t)rect->x + rect->width + 1, width);

	right = min_u64(max_u64(right, left + STRIP_MIN), width);
	left = min_u64(left, right - min_u64(right, STRIP_MIN));
	return (struct strip){ (JDIMENSION)left, (JDIMENSION)(right - left) };
}

/* Skips to the rectangle's first row, decoding as little as possible. */
static int seek(struct codec *c)
{
	JDIMENSION width = c->jpeg.output_width;
	struct strip *strip = &c->strip;
	int r = make_rows(c);

	if (r)
		return r;
	*strip = (struct strip){ 0, width };
	if (is_smoothed(&c->jpeg) || !has_usual_sampling(&c->jpeg)) {
		read_past(c, c->rect.y);
		return 0;
	}
	*strip = strip_of(&c->rect, width);
	if (strip->width < width)
		jpeg_crop_scanline(&c->jpeg, &strip->x, &strip->width);
	/* Exact only if called once, from row 0. */
	if (c->rect.y)
		jpeg_skip_scanlines(&c->jpeg, c->rect.y);
	return 0;
}

static int check_end(struct codec *c)
{
	if (!codec_source_ended(c->source) || !codec_header_needs_end(&c->jpeg))
		return 0;
	return codec_error_set(c->error, -EBADMSG, "premature end of the file");
}

static int start_decoding(void *arg)
{
	struct codec *c = arg;
	int r = read_header(c);

	if (r)
		return r;
	if (!c->rect.width || !c->rect.height ||
	    !range_ok(c->rect.x, c->rect.width, c->jpeg.image_width) ||
	    !range_ok(c->rect.y, c->rect.height, c->jpeg.image_height))
		return codec_error_set(c->error, -ERANGE,
				       "the rectangle is not inside %u x %u",
				       c->jpeg.image_width,
				       c->jpeg.image_height);
	choose(c);
	jpeg_start_decompress(&c->jpeg);
	r = check_end(c);
	return r ? r : seek(c);
}

static int start_rows(struct codec *c, const uint8_t *bytes, size_t size,
		      const struct rect *rect, bool gray)
{
	int r;

	c->gray = gray;
	c->bytes = bytes;
	c->size = size;
	c->rect = *rect;
	c->next = 0;
	r = codec_error_run(c->error, start_decoding, c);
	if (r)
		jpeg_abort_decompress(&c->jpeg);
	return r;
}

int codec_start(struct codec *c, const uint8_t *bytes, size_t size,
		const struct rect *rect)
{
	return start_rows(c, bytes, size, rect, false);
}

int codec_start_gray(struct codec *c, const uint8_t *bytes, size_t size,
		     const struct rect *rect)
{
	return start_rows(c, bytes, size, rect, true);
}

/* In place. */
static void rgb_to_gray(uint8_t *pixels, uint32_t width)
{
	const uint8_t *in = pixels;

	for (uint32_t i = 0; i < width; i++, in += 3)
		pixels[i] = (uint8_t)gray_of(in[0], in[1], in[2]);
}

/*
 * All programs write CMYK inverted, as Adobe does: 255 is no ink. Rounds as
 * Pillow does. In place: each byte is read before it is overwritten.
 */
static void cmyk_to_rgb(uint8_t *pixels, uint32_t width)
{
	const uint8_t *in = pixels;
	uint8_t *out = pixels;

	for (uint32_t i = 0; i < width; i++, in += 4, out += 3) {
		uint32_t black = in[3];

		for (int k = 0; k < 3; k++) {
			uint32_t v = (255u - in[k]) * black + 128;

			out[k] = (uint8_t)(black - ((v + (v >> 8)) >> 8));
		}
	}
}

/* Writes the rows of c->out. */
static int read_rows(void *arg)
{
	struct codec *c = arg;
	JSAMPROW rows[CODEC_ROWS];
	uint32_t y = 0;

	for (uint32_t i = 0; i < c->out->height; i++)
		rows[i] = (uint8_t *)c->rows.p + i * c->out->stride;
	while (y < c->out->height) {
		JDIMENSION n = jpeg_read_scanlines(&c->jpeg, rows + y,
						   c->out->height - y);

		if (!n)
			return codec_error_set(c->error, -EBADMSG,
					       "no more rows");
		y += n;
	}
	for (y = 0; c->jpeg.output_components == 4 && y < c->out->height; y++) {
		uint8_t *pixels = c->out->pixels + y * c->out->stride;

		cmyk_to_rgb(pixels, c->rect.width);
		if (c->gray)
			rgb_to_gray(pixels, c->rect.width);
	}
	return check_end(c);
}

int codec_rows(struct codec *c, struct image *out)
{
	uint32_t left = c->rect.height - c->next;
	size_t pixel = (size_t)c->jpeg.output_components;
	int r;

	*out = (struct image){
		.pixels =
			(uint8_t *)c->rows.p + (c->rect.x - c->strip.x) * pixel,
		.width = c->rect.width,
		.height = (uint32_t)min_u64(left, CODEC_ROWS),
		.stride = c->strip.width * pixel,
	};
	if (!left)
		return 0;
	c->out = out;
	r = codec_error_run(c->error, read_rows, c);
	c->next += out->height;
	/* Frees libjpeg's memory at once, not with the next image. */
	if (r || c->next == c->rect.height) {
		jpeg_abort_decompress(&c->jpeg);
		c->next = c->rect.height;
	}
	return r;
}

int codec_decode(struct codec *c, const uint8_t *bytes, size_t size,
		 const struct rect *rect, struct image *out)
{
	uint8_t *to = out->pixels;
	struct image rows;
	int r = codec_start(c, bytes, size, rect);

	assert(out->width == rect->width && out->height == rect->height);
	while (!r && !(r = codec_rows(c, &rows)) && rows.height)
		for (uint32_t y = 0; y < rows.height; y++, to += out->stride)
			memcpy(to, rows.pixels + y * rows.stride,
			       (size_t)rows.width * 3);
	return r;
}

int codec_encode(struct codec *c, const struct image *image, unsigned quality,
		 uint8_t **bytes, size_t *size)
{
	return codec_encoder_run(c->encoder, image, quality, bytes, size);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding goes through libjpeg-turbo's partial decompression: rows above the
 * crop are skipped (their entropy code has to be read all the same), columns
 * beside it are never transformed. A crop is widened by a pixel on each side,
 * because fancy upsampling of the outermost column looks at its neighbour;
 * then the pixels are those of a full decode, bit for bit.
 */
#include "loader/codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "beton/beton.h"
#include "fs/bytes.h"
#include "loader/exif.h"

enum {
	/* A progressive image keeps all its coefficients: 2 bytes each. This
	   many of them is an image of 170 megapixels. */
	COEFFICIENTS_MAX = 1 << 29,
	/* Scans beyond what any encoder writes only cost time: each is a pass
	   over the whole image. */
	SCANS_MAX = 500,
	APP1_BYTES = 65533,
};

struct codec {
	struct jpeg_decompress_struct decoder; /* its error manager is below */
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	bool has_decoder;
	char message[JMSG_LENGTH_MAX];
	uint8_t *row; /* a row of the widened crop */
	size_t row_size;
};

/* --- libjpeg's callbacks --- */

static struct codec *codec_of(j_common_ptr cinfo)
{
	return cinfo->client_data;
}

static void on_error(j_common_ptr cinfo)
{
	struct codec *c = codec_of(cinfo);

	cinfo->err->format_message(cinfo, c->message);
	longjmp(c->escape, 1);
}

/* Warnings that leave no doubt about the pixels. */
static bool is_harmless(int code)
{
	switch (code) {
	case JWRN_EXTRANEOUS_DATA:
	case JWRN_ADOBE_XFORM:
	case JWRN_JFIF_MAJOR:
	case JWRN_TOO_MUCH_DATA:
		return true;
	default:
		return false;
	}
}

/* libjpeg goes on after damage with gray or repeated pixels. Training on those
   unknowingly is worse than an error. */
static void on_message(j_common_ptr cinfo, int level)
{
	if (level < 0 && !is_harmless(cinfo->err->msg_code))
		on_error(cinfo);
}

static void on_output(j_common_ptr cinfo)
{
	(void)cinfo;
}

static void on_progress(j_common_ptr cinfo)
{
	j_decompress_ptr d = (j_decompress_ptr)cinfo;

	if (cinfo->is_decompressor && d->input_scan_number > SCANS_MAX)
		ERREXIT(cinfo, JERR_BAD_PROGRESSION);
}

static void source_nothing(j_decompress_ptr d)
{
	(void)d;
}

/* All bytes were there from the start: wanting more is a premature end. */
static boolean source_fill(j_decompress_ptr d)
{
	ERREXIT(d, JERR_INPUT_EOF);
	return FALSE;
}

static void source_skip(j_decompress_ptr d, long n)
{
	struct jpeg_source_mgr *s = d->src;

	if (n <= 0)
		return;
	if ((size_t)n > s->bytes_in_buffer)
		ERREXIT(d, JERR_INPUT_EOF);
	s->next_input_byte += n;
	s->bytes_in_buffer -= (size_t)n;
}

/* --- a decoder's life --- */

static void set_up(struct codec *c)
{
	c->decoder.err = jpeg_std_error(&c->errors);
	c->errors.error_exit = on_error;
	c->errors.emit_message = on_message;
	c->errors.output_message = on_output;
	c->decoder.client_data = c;
}

int codec_open(struct codec **out)
{
	struct codec *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	set_up(c);
	if (setjmp(c->escape)) {
		codec_close(c);
		return -ENOMEM;
	}
	jpeg_create_decompress(&c->decoder);
	c->has_decoder = true;
	c->decoder.client_data = c;
	c->source = (struct jpeg_source_mgr){
		.init_source = source_nothing,
		.fill_input_buffer = source_fill,
		.skip_input_data = source_skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = source_nothing,
	};
	c->decoder.src = &c->source;
	c->progress.progress_monitor = on_progress;
	c->decoder.progress = &c->progress;
	*out = c;
	return 0;
}

void codec_close(struct codec *c)
{
	if (!c)
		return;
	if (c->has_decoder)
		jpeg_destroy_decompress(&c->decoder);
	free(c->row);
	free(c);
}

const char *codec_message(const struct codec *c)
{
	return c->message;
}

static void start(struct codec *c, const uint8_t *bytes, size_t size)
{
	c->message[0] = '\0';
	c->source.next_input_byte = bytes;
	c->source.bytes_in_buffer = size;
	jpeg_read_header(&c->decoder, TRUE);
}

/* Before memory of its size is taken. */
static void check_size(struct codec *c)
{
	j_decompress_ptr d = &c->decoder;
	uint64_t coefficients = (uint64_t)d->image_width * d->image_height *
				(uint64_t)d->num_components;

	if (jpeg_has_multiple_scans(d) && coefficients > COEFFICIENTS_MAX)
		ERREXIT1(d, JERR_OUT_OF_MEMORY, 0);
}

/* --- probing --- */

static enum codec_colour colour_of(const struct jpeg_decompress_struct *d)
{
	if (d->num_components == 1)
		return CODEC_GRAY;
	return d->num_components == 4 ? CODEC_CMYK : CODEC_RGB;
}

static unsigned orientation_of(const struct jpeg_decompress_struct *d)
{
	unsigned o = 1;

	for (jpeg_saved_marker_ptr m = d->marker_list; m && o == 1; m = m->next)
		o = exif_orientation(m->data, m->data_length);
	return o;
}

int codec_probe(struct codec *c, const uint8_t *bytes, size_t size,
		struct codec_info *out)
{
	j_decompress_ptr d = &c->decoder;

	if (setjmp(c->escape)) {
		jpeg_abort_decompress(d);
		jpeg_save_markers(d, JPEG_APP0 + 1, 0);
		return -EBADMSG;
	}
	jpeg_save_markers(d, JPEG_APP0 + 1, APP1_BYTES);
	start(c, bytes, size);
	*out = (struct codec_info){
		.width = d->image_width,
		.height = d->image_height,
		.colour = colour_of(d),
		.baseline = !d->progressive_mode && !d->arith_code &&
			    d->data_precision == 8,
		.orientation = orientation_of(d),
	};
	jpeg_abort_decompress(d);
	jpeg_save_markers(d, JPEG_APP0 + 1, 0);
	return 0;
}

/* --- decoding --- */

/* Adobe's CMYK files hold the complement, and they are nearly all. */
static void cmyk_to_rgb(const uint8_t *in, uint8_t *out, size_t pixels,
			bool inverted)
{
	uint8_t flip = inverted ? 0 : 255;
	unsigned k;

	for (size_t i = 0; i < pixels; i++, in += 4, out += 3) {
		k = in[3] ^ flip;
		for (int channel = 0; channel < 3; channel++)
			out[channel] =
				(uint8_t)(((in[channel] ^ flip) * k + 127) /
					  255);
	}
}

static void need_row(struct codec *c, size_t size)
{
	if (size > c->row_size) {
		free(c->row);
		c->row_size = 0;
		c->row = malloc(size);
		if (!c->row)
			ERREXIT1(&c->decoder, JERR_OUT_OF_MEMORY, 1);
		c->row_size = size;
	}
}

/* Reads the crop's rows; columns begin `left` pixels into what is decoded. */
static void read_rows(struct codec *c, size_t left, struct image *out)
{
	j_decompress_ptr d = &c->decoder;
	bool cmyk = d->out_color_space == JCS_CMYK;
	bool whole = !cmyk && d->output_width == out->width;
	size_t pixel = cmyk ? 4 : 3;
	JSAMPROW row;

	if (!whole)
		need_row(c, d->output_width * pixel);
	for (uint32_t y = 0; y < out->height; y++) {
		uint8_t *to = out->pixels + y * out->stride;

		row = whole ? to : c->row;
		jpeg_read_scanlines(d, &row, 1);
		if (cmyk)
			cmyk_to_rgb(row + left * 4, to, out->width,
				    d->saw_Adobe_marker);
		else if (!whole)
			memcpy(to, row + left * 3, (size_t)out->width * 3);
	}
}

static void decode_crop(struct codec *c, const struct rect *rect,
			struct image *out)
{
	j_decompress_ptr d = &c->decoder;
	/* One pixel more on each side, see the top. */
	JDIMENSION x = rect->x ? rect->x - 1 : 0;
	JDIMENSION end = (JDIMENSION)min_u64(
		(uint64_t)rect->x + rect->width + 1, d->image_width);
	JDIMENSION width = end - x;

	d->out_color_space = d->num_components == 4 ? JCS_CMYK : JCS_RGB;
	d->dct_method = JDCT_ISLOW;
	d->do_fancy_upsampling = TRUE;
	check_size(c);
	jpeg_start_decompress(d);
	if (width < d->output_width)
		jpeg_crop_scanline(d, &x, &width);
	else
		x = 0;
	if (rect->y)
		jpeg_skip_scanlines(d, rect->y);
	read_rows(c, rect->x - x, out);
}

int codec_decode(struct codec *c, const uint8_t *bytes, size_t size,
		 const struct rect *rect, enum quality quality,
		 struct image *out)
{
	j_decompress_ptr d = &c->decoder;
	volatile int r = -EBADMSG;

	(void)quality;
	if (setjmp(c->escape)) {
		jpeg_abort_decompress(d);
		return r;
	}
	start(c, bytes, size);
	if (!range_ok(rect->x, rect->width, d->image_width) ||
	    !range_ok(rect->y, rect->height, d->image_height)) {
		snprintf(c->message, sizeof(c->message), "a JPEG of %u x %u",
			 d->image_width, d->image_height);
		r = -ERANGE;
	} else {
		decode_crop(c, rect, out);
		r = 0;
	}
	jpeg_abort_decompress(d);
	return r;
}

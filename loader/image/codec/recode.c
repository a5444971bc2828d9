/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/recode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/image/codec/error.h"
#include "loader/image/codec/header.h"
#include "loader/image/codec/index.h"
#include "loader/image/codec/marker.h"
#include "loader/image/codec/source.h"
#include "loader/image/codec/target.h"
#include "loader/image/jpeg/entry_index.h"

enum {
	MARKER_APP0 = 0xe0,
	MARKER_APP14 = 0xee,
	APPLICATIONS = 16,
	SEGMENT_MAX = 0xffff,
	/* Bits that a decoder reads in the time that it needs to make
	   tables. */
	OWN_CODES_GAIN = 8 * 8192,
};

struct codec_recoder {
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct out;
	struct codec_error *error;
	struct codec_source *source;
	struct codec_target *target;
	struct codec_indexer *indexer;
	/* State of the current call: */
	const uint8_t *bytes;
	size_t size;
	const struct symbols_codes *shared;
	jvirt_barray_ptr *coefficients;
	struct symbols symbols;
	struct symbols_codes codes; /* best codes for the counts */
	bool own_codes;
};

static int create(void *arg)
{
	struct codec_recoder *r = arg;

	jpeg_create_decompress(&r->in);
	jpeg_create_compress(&r->out);
	r->in.src = codec_source_manager(r->source);
	r->out.dest = codec_target_manager(r->target);
	/* Ignores the environment's JPEGMEM. */
	r->in.mem->max_memory_to_use = CODEC_MEMORY_MAX;
	jpeg_save_markers(&r->in, JPEG_COM, SEGMENT_MAX);
	for (int i = 0; i < APPLICATIONS; i++)
		jpeg_save_markers(&r->in, MARKER_APP0 + i, SEGMENT_MAX);
	return 0;
}

int codec_recoder_open(struct codec_recoder **out)
{
	struct codec_recoder *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	e = codec_error_open(&r->error);
	e = e ? e : codec_source_open(&r->source);
	e = e ? e : codec_target_open(&r->target);
	e = e ? e : codec_indexer_open(&r->indexer);
	if (!e) {
		r->in.err = codec_error_manager(r->error);
		r->out.err = r->in.err;
		e = codec_error_run(r->error, create, r);
	}
	if (e)
		codec_recoder_close(r);
	else
		*out = r;
	return e;
}

void codec_recoder_close(struct codec_recoder *r)
{
	if (!r)
		return;
	jpeg_destroy_compress(&r->out);
	jpeg_destroy_decompress(&r->in);
	codec_indexer_close(r->indexer);
	codec_target_close(r->target);
	codec_source_close(r->source);
	codec_error_close(r->error);
	free(r);
}

const char *codec_recoder_message(const struct codec_recoder *r)
{
	return codec_error_message(r->error);
}

/*
 * libjpeg holds all coefficients at once, 128 bytes a block. A block takes two
 * bits or more of a whole file.
 */
static int check_memory(struct codec_recoder *r)
{
	uint64_t blocks = 0;

	for (int i = 0; i < r->in.num_components; i++)
		blocks += (uint64_t)r->in.comp_info[i].width_in_blocks *
			  r->in.comp_info[i].height_in_blocks;
	if (blocks / 4 > r->size)
		return codec_error_set(
			r->error, -EBADMSG,
			"%u x %u pixels are too many for %zu bytes",
			r->in.image_width, r->in.image_height, r->size);
	return 0;
}

static bool begins_with(const struct jpeg_marker_struct *m, const char *name)
{
	size_t size = strlen(name);

	return m->data_length >= size && !memcmp(m->data, name, size);
}

/* Drops segments that libjpeg writes itself, and an index of the old data. */
static bool is_ours(const struct codec_recoder *r,
		    const struct jpeg_marker_struct *m)
{
	switch (m->marker) {
	case MARKER_APP0:
		return r->out.write_JFIF_header && begins_with(m, "JFIF");
	case MARKER_APP14:
		return r->out.write_Adobe_marker && begins_with(m, "Adobe");
	case ENTRY_MARKER:
		return begins_with(m, ENTRY_NAME);
	default:
		return false;
	}
}

static void copy_segments(struct codec_recoder *r)
{
	for (jpeg_saved_marker_ptr m = r->in.marker_list; m; m = m->next)
		if (!is_ours(r, m))
			jpeg_write_marker(&r->out, m->marker, m->data,
					  m->data_length);
}

/* Copies the coefficients, and all settings but the codes. */
static int read_coefficients(struct codec_recoder *r)
{
	int e;

	codec_source_set(r->source, r->bytes, r->size);
	jpeg_read_header(&r->in, TRUE);
	codec_source_past_header(r->source);
	e = codec_header_check(&r->in, r->bytes, r->size, r->error);
	e = e ? e : check_memory(r);
	if (e)
		return e;
	r->coefficients = jpeg_read_coefficients(&r->in);
	if (codec_header_needs_end(&r->in) && codec_source_ended(r->source))
		return codec_error_set(r->error, -EBADMSG,
				       "premature end of the file");
	jpeg_copy_critical_parameters(&r->in, &r->out);
	r->out.arith_code = FALSE;
	return 0;
}

/*
 * A component's blocks in the order of the scan, `down` rows at a time. Leaves
 * out padding blocks of the last MCUs, which make no difference.
 */
static void count_component(struct codec_recoder *r, int i)
{
	const jpeg_component_info *c = &r->in.comp_info[i];
	bool alone = r->in.num_components == 1;
	JDIMENSION across = alone ? 1 : (JDIMENSION)c->h_samp_factor;
	JDIMENSION down = alone ? 1 : (JDIMENSION)c->v_samp_factor;
	bool chroma = r->out.comp_info[i].ac_tbl_no;
	int before = 0;

	for (JDIMENSION y = 0; y < c->height_in_blocks; y += down) {
		JBLOCKARRAY rows = r->in.mem->access_virt_barray(
			(j_common_ptr)&r->in, r->coefficients[i], y, down,
			FALSE);
		JDIMENSION n = c->height_in_blocks - y;

		for (JDIMENSION k = 0; k < c->width_in_blocks * down; k++) {
			JDIMENSION row = k / across % down;
			JDIMENSION x = k / across / down * across + k % across;

			if (row >= n || x >= c->width_in_blocks)
				continue;
			symbols_count_block(&r->symbols, chroma, before,
					    rows[row][x]);
			before = rows[row][x][0];
		}
	}
}

static void count_symbols(struct codec_recoder *r)
{
	memset(&r->symbols, 0, sizeof(r->symbols));
	for (int i = 0; i < r->in.num_components; i++)
		count_component(r, i);
}

static int count(void *arg)
{
	struct codec_recoder *r = arg;
	int e = read_coefficients(r);

	if (!e)
		count_symbols(r);
	return e;
}

int codec_count(struct codec_recoder *r, const uint8_t *bytes, size_t size,
		struct symbols *sum)
{
	int e;

	r->bytes = bytes;
	r->size = size;
	e = codec_error_run(r->error, count, r);
	jpeg_abort_compress(&r->out);
	jpeg_abort_decompress(&r->in);
	if (!e)
		symbols_add(sum, &r->symbols);
	return e;
}

/* Whether codes of its own make the JPEG enough smaller. */
static bool wants_own_codes(struct codec_recoder *r)
{
	if (!r->shared)
		return true;
	count_symbols(r);
	symbols_make_codes(&r->symbols, false, &r->codes);
	return symbols_bits(&r->symbols, r->shared) >
	       symbols_bits(&r->symbols, &r->codes) + OWN_CODES_GAIN;
}

static void set_code(struct codec_recoder *r, JHUFF_TBL **table,
		     const uint8_t *definition)
{
	if (!*table)
		*table = jpeg_alloc_huff_table((j_common_ptr)&r->out);
	memcpy((*table)->bits + 1, definition, HUFFMAN_CODE_MAX);
	memcpy((*table)->huffval, definition + HUFFMAN_CODE_MAX,
	       HUFFMAN_SYMBOLS);
}

static void set_codes(struct codec_recoder *r)
{
	r->own_codes = wants_own_codes(r);
	r->out.optimize_coding = r->own_codes;
	for (int i = 0; i < 2 && !r->own_codes; i++) {
		const uint8_t(*d)[SYMBOLS_DEFINITION] =
			&r->shared->definition[i * SYMBOLS_KINDS];

		set_code(r, &r->out.dc_huff_tbl_ptrs[i], d[SYMBOLS_DC]);
		set_code(r, &r->out.ac_huff_tbl_ptrs[i], d[SYMBOLS_AC]);
	}
}

static int transcode(void *arg)
{
	struct codec_recoder *r = arg;
	int e = read_coefficients(r);

	if (e)
		return e;
	set_codes(r);
	jpeg_write_coefficients(&r->out, r->coefficients);
	copy_segments(r);
	jpeg_finish_compress(&r->out);
	return 0;
}

/* *out becomes the owner of the bytes, or of a copy with the index. */
static int finish(struct codec_recoder *r, uint8_t **made, size_t size,
		  int step, struct recoded *out)
{
	struct recoded with = { .own_codes = r->own_codes };
	int e = -ENOTSUP;

	if (step != RECODE_NO_INDEX)
		e = codec_index(r->indexer, *made, size, (uint32_t)step,
				&with.bytes, &with.size);
	if (e == -ENOMEM)
		return codec_error_set(r->error, e, "out of memory");
	if (!e)
		with.index_size = with.size - size;
	else {
		with.bytes = steal(*made);
		with.size = size;
	}
	*out = with;
	return 0;
}

int codec_recode(struct codec_recoder *r, const uint8_t *bytes, size_t size,
		 int step, const struct symbols_codes *shared,
		 struct recoded *out)
{
	size_t made_size = 0;
	int e;

	r->bytes = bytes;
	r->size = size;
	r->shared = shared;
	e = codec_error_run(r->error, transcode, r);
	jpeg_abort_compress(&r->out);
	jpeg_abort_decompress(&r->in);

	cleanup_free uint8_t *made = codec_target_take(r->target, &made_size);

	return e ? e : finish(r, &made, made_size, step, out);
}

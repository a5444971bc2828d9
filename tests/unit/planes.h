/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of JPEGs by libjpeg-turbo, for comparison with
 * loader/image/jpeg/baseline.h. */
#ifndef TESTS_UNIT_PLANES_H
#define TESTS_UNIT_PLANES_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "loader/image/jpeg/baseline.h"

/* All of a JPEG, each plane with rows of its blocks' whole width. */
struct planes {
	unsigned n;
	struct plane {
		uint8_t *samples;
		size_t stride;
		size_t height;
	} plane[BASELINE_COMPONENTS];
};

struct planes_error {
	struct jpeg_error_mgr manager; /* first: libjpeg passes it around */
	jmp_buf escape;
};

static void planes_escape(j_common_ptr cinfo)
{
	longjmp(((struct planes_error *)cinfo->err)->escape, 1);
}

/* As loader/image/codec/codec.c has it; a JPEG may lack its end marker. */
static void planes_hear(j_common_ptr cinfo, int level)
{
	int code = cinfo->err->msg_code;

	if (level < 0 && code != JWRN_ADOBE_XFORM && code != JWRN_BOGUS_ICC &&
	    code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR &&
	    code != JWRN_NOT_SEQUENTIAL && code != JWRN_TOO_MUCH_DATA &&
	    code != JWRN_JPEG_EOF)
		planes_escape(cinfo);
}

static void planes_print_nothing(j_common_ptr cinfo)
{
	(void)cinfo;
}

static inline void planes_free(struct planes *planes)
{
	for (unsigned i = 0; i < BASELINE_COMPONENTS; i++)
		free(planes->plane[i].samples);
	*planes = (struct planes){ 0 };
}

#if JPEG_LIB_VERSION >= 70
#	define PLANES_SIDE(c) ((size_t)(c)->DCT_v_scaled_size)
#	define PLANES_SIDE_MIN(j) ((j)->min_DCT_v_scaled_size)
#else
#	define PLANES_SIDE(c) ((size_t)(c)->DCT_scaled_size)
#	define PLANES_SIDE_MIN(j) ((j)->min_DCT_scaled_size)
#endif

/* Leaves by longjmp where there is no memory either. */
static inline void planes_make(struct jpeg_decompress_struct *jpeg,
			       struct planes *planes)
{
	planes->n = (unsigned)jpeg->num_components;
	for (unsigned i = 0; i < planes->n; i++) {
		jpeg_component_info *c = &jpeg->comp_info[i];
		struct plane *p = &planes->plane[i];
		size_t rows = (size_t)c->v_samp_factor * PLANES_SIDE(c);

		p->stride = (c->width_in_blocks + 4) * PLANES_SIDE(c);
		p->height = jpeg->total_iMCU_rows * rows;
		p->samples = malloc(p->stride * p->height);
		if (!p->samples)
			planes_escape((j_common_ptr)jpeg);
	}
}

static inline void planes_read(struct jpeg_decompress_struct *jpeg,
			       struct planes *planes)
{
	JSAMPROW rows[BASELINE_COMPONENTS][4 * DCTSIZE];
	JSAMPARRAY to[BASELINE_COMPONENTS];

	for (size_t y = 0; jpeg->output_scanline < jpeg->output_height; y++) {
		for (unsigned i = 0; i < planes->n; i++) {
			struct plane *p = &planes->plane[i];
			jpeg_component_info *c = &jpeg->comp_info[i];
			size_t n = (size_t)c->v_samp_factor * PLANES_SIDE(c);

			for (size_t k = 0; k < n; k++)
				rows[i][k] =
					p->samples + (y * n + k) * p->stride;
			to[i] = rows[i];
		}
		jpeg_read_raw_data(jpeg, to,
				   (JDIMENSION)(jpeg->max_v_samp_factor *
						PLANES_SIDE_MIN(jpeg)));
	}
}

/*
 * Decodes JPEGs of 1 or 3 components, reduced by 1, 2, 4 or 8. False: libjpeg
 * reports an error, or a warning that implies wrong samples. Data after the
 * last row is ignored.
 */
static inline bool planes_reduced(const uint8_t *bytes, size_t size,
				  unsigned by, struct planes *planes)
{
	struct jpeg_decompress_struct jpeg;
	struct planes_error error;
	volatile bool good = false;

	*planes = (struct planes){ 0 };
	jpeg.err = jpeg_std_error(&error.manager);
	error.manager.error_exit = planes_escape;
	error.manager.emit_message = planes_hear;
	error.manager.output_message = planes_print_nothing;
	jpeg_create_decompress(&jpeg);
	if (!setjmp(error.escape)) {
		jpeg_mem_src(&jpeg, bytes, size);
		jpeg_read_header(&jpeg, TRUE);
		if (jpeg.num_components > BASELINE_COMPONENTS)
			planes_escape((j_common_ptr)&jpeg);
		jpeg.raw_data_out = TRUE;
		jpeg.scale_num = 1;
		jpeg.scale_denom = by;
		jpeg.dct_method = JDCT_ISLOW;
		jpeg_start_decompress(&jpeg);
		planes_make(&jpeg, planes);
		planes_read(&jpeg, planes);
		good = true;
	}
	jpeg_destroy_decompress(&jpeg);
	if (!good)
		planes_free(planes);
	return good;
}

static inline bool planes_decode(const uint8_t *bytes, size_t size,
				 struct planes *planes)
{
	return planes_reduced(bytes, size, 1, planes);
}

/* Whether a part of a component is what the whole has there. */
static inline bool planes_agree(const struct plane *whole,
				const struct baseline_plane *part)
{
	for (uint32_t y = 0; y < part->height; y++)
		if (memcmp(whole->samples + (part->y + y) * whole->stride +
				   part->x,
			   part->samples + y * part->stride, part->width))
			return false;
	return true;
}

#endif

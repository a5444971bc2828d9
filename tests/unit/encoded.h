/* SPDX-License-Identifier: Apache-2.0 */
/* Baseline JPEGs of any kind, made by libjpeg. */
#ifndef TESTS_UNIT_ENCODED_H
#define TESTS_UNIT_ENCODED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

struct jpeg {
	uint8_t *bytes;
	size_t size;
};

/* How a JPEG is made. */
struct kind {
	uint32_t width;
	uint32_t height;
	int components;
	int across; /* of luma; 2 halves chroma */
	int down;
	int quality;
	bool optimized;
	unsigned restart; /* MCUs */
	int noise;	  /* of 256 */
};

/* As most are. */
__attribute__((unused)) static const struct kind KIND_PHOTO = {
	.width = 300,
	.height = 200,
	.components = 3,
	.across = 2,
	.down = 2,
	.quality = 90,
	.noise = 40,
};

static inline uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_next(rng) % n);
}

static inline void set_kind(struct jpeg_compress_struct *c,
			    const struct kind *kind)
{
	c->image_width = kind->width;
	c->image_height = kind->height;
	c->input_components = kind->components;
	c->in_color_space = kind->components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
	jpeg_set_defaults(c);
	jpeg_set_quality(c, kind->quality, TRUE);
	c->comp_info[0].h_samp_factor = kind->across;
	c->comp_info[0].v_samp_factor = kind->down;
	c->optimize_coding = kind->optimized;
	c->restart_interval = kind->restart;
}

/* Slopes, edges and noise, so that there are runs of all lengths. */
static inline void fill_row(const struct kind *kind, uint32_t y,
			    struct rng *rng, uint8_t *row)
{
	for (uint32_t x = 0; x < kind->width; x++)
		for (int i = 0; i < kind->components; i++) {
			int v = (int)(x * 3 + y * (uint32_t)(2 + i)) & 255;

			if ((x ^ y) & 16)
				v = 200 - v / 4;
			if (kind->noise)
				v += (int)below(rng, (uint32_t)kind->noise);
			*row++ = (uint8_t)v;
		}
}

static inline struct jpeg encode(const struct kind *kind)
{
	struct rng rng = { .key = kind->width * 777 + kind->height };
	uint8_t *row = malloc((size_t)kind->width * 3);
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr error;
	struct jpeg jpeg = { 0 };
	unsigned long size = 0;

	CHECK(row);
	c.err = jpeg_std_error(&error);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &jpeg.bytes, &size);
	set_kind(&c, kind);
	jpeg_start_compress(&c, TRUE);
	for (uint32_t y = 0; y < kind->height; y++) {
		fill_row(kind, y, &rng, row);
		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	jpeg.size = size;
	return jpeg;
}

#endif

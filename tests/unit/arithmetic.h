/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic-coded JPEGs, if libjpeg can make them. */
#ifndef TESTS_UNIT_ARITHMETIC_H
#define TESTS_UNIT_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

static inline bool has_arithmetic(const char *test)
{
#ifdef C_ARITH_CODING_SUPPORTED
	(void)test;
	return true;
#else
	printf("skipped, libjpeg has no arithmetic encoder: %s\n", test);
	return false;
#endif
}

/* Encodes pixels with detail everywhere, or all zero. The caller frees
 *bytes. */
static inline void encode_arithmetic(uint32_t width, uint32_t height, bool busy,
				     uint8_t **bytes, size_t *size)
{
	struct rng rng = { .key = width * 1000 + height };
	uint8_t *row = calloc(width, 3);
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr error;
	unsigned long n = 0;

	CHECK(row);
	*bytes = NULL;
	c.err = jpeg_std_error(&error);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, bytes, &n);
	c.image_width = width;
	c.image_height = height;
	c.input_components = 3;
	c.in_color_space = JCS_RGB;
	jpeg_set_defaults(&c);
	c.arith_code = TRUE;
	jpeg_start_compress(&c, TRUE);
	for (uint32_t y = 0; y < height; y++) {
		for (uint32_t i = 0; busy && i < 3 * width; i++)
			row[i] = (uint8_t)rng_next(&rng);
		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	*size = n;
}

#endif

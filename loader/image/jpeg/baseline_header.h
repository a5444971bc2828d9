/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a JPEG that baseline.c decodes: all segments before its scan.
 */
#ifndef LOADER_IMAGE_JPEG_BASELINE_HEADER_H
#define LOADER_IMAGE_JPEG_BASELINE_HEADER_H

#include <stddef.h>
#include <stdint.h>

enum { BASELINE_COMPONENTS = 3 };

/* One component of a JPEG; luma is the first. */
struct baseline_component {
	uint8_t across; /* how many image pixels a sample covers: 1 or 2 */
	uint8_t down;
	uint32_t
		width; /* of the whole component: pixels / across, rounded up */
	uint32_t height;
	/* For the decoder alone: */
	uint8_t side;	       /* side of a block, in samples */
	uint8_t blocks_across; /* blocks in an MCU */
	uint8_t blocks_down;
	const uint8_t *quant; /* 64 bytes in zigzag order; not owned */
	const uint8_t *dc;    /* a DHT's 16 counts, and symbols; not owned */
	const uint8_t *ac;
};

/* The header of a JPEG, parsed. It points into the JPEG's bytes. */
struct baseline_image {
	uint32_t width;
	uint32_t height;
	unsigned components; /* 1: gray, 3: Y, Cb, Cr (JFIF's conversion) */
	struct baseline_component component[BASELINE_COMPONENTS];
	/* For the decoder alone: */
	uint32_t mcus_across;
	uint32_t mcus_down;
	uint32_t restart_interval; /* MCUs; 0: none */
	const uint8_t *scan;	   /* entropy-coded data, and what follows */
	size_t scan_size;
	const uint8_t *index; /* the first segment of that name; or NULL */
	size_t index_size;
};

/*
 * Accepts unambiguous headers only: segments without a byte between them, each
 * of the required length, and every table present. Returns NULL and writes
 * *out, or returns the reason.
 */
const char *baseline_header_parse(const uint8_t *bytes, size_t size,
				  struct baseline_image *out);

/*
 * Describes the same JPEG as an image with sides divided by 2, 4 or 8, rounded
 * up; the decoder takes the result as any other. 1 changes nothing. A sample is
 * the mean of `by` squared samples. Chroma of half the sides becomes as large
 * as luma, from a quarter of its samples. The bits are those of libjpeg-turbo's
 * scale_num. `image` itself must not be reduced.
 */
void baseline_reduce(const struct baseline_image *image, unsigned by,
		     struct baseline_image *out);

#endif

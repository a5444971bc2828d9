/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the entropy-coded data of a baseline JPEG to samples. This is the
 * inner loop of baseline.c, which finds the data and the wanted part. Bytes are
 * hostile: damage is noticed at the latest at the end of a run of MCUs, and
 * until then reads stay within the padding.
 */
#ifndef LOADER_IMAGE_JPEG_ENTROPY_H
#define LOADER_IMAGE_JPEG_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

#include "loader/image/jpeg/idct.h"

struct huffman_ac;
struct huffman_dc;

enum {
	ENTROPY_COMPONENTS = 3,
	ENTROPY_BLOCKS = 10, /* most blocks of an MCU */
	/* Zeros after the data. The decoder reads an MCU before it checks for
	   the end, and a word at a time: blocks of a DC coefficient of 27 bits
	   and 63 others of 26. */
	ENTROPY_PAD = ENTROPY_BLOCKS * (27 + 63 * 26) / 8 + 64,
};

/* Blocks are counted from the component's first. Sizes are in blocks. */
struct entropy_component {
	_Alignas(IDCT_ALIGN) int16_t quant[IDCT_SIZE]; /* in the IDCT's order */
	const struct huffman_dc *dc;
	const struct huffman_ac *ac;
	idct_fn *idct;		/* for `side` samples; NULL: side is 1 */
	uint32_t side;		/* of a block */
	uint32_t blocks_across; /* blocks in an MCU */
	uint32_t blocks_down;
	uint32_t x; /* wanted part */
	uint32_t y;
	uint32_t width;
	uint32_t height;
	uint8_t *samples; /* samples of block (x, y) */
	size_t stride;
};

struct entropy_scan {
	struct entropy_component component[ENTROPY_COMPONENTS];
	unsigned components;
	uint32_t mcus_across;
	/* MCUs with a wanted block. */
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

/* Where an MCU begins, and the DC coefficients before it. */
struct entropy_mark {
	uint64_t bit;
	int32_t dc[ENTROPY_COMPONENTS];
};

/* A run of MCUs, and how far it is decoded. */
struct entropy_run {
	const uint8_t *bytes; /* without stuffing; ENTROPY_PAD zeros follow */
	size_t size;
	uint64_t bit; /* where the next MCU begins */
	uint32_t mcu; /* its number in the image */
	uint32_t n;   /* number of MCUs */
	int32_t dc[ENTROPY_COMPONENTS];
	/* Receives a mark for the first MCU of each row of MCUs, and for every
	   `step` MCUs of the row after it. NULL: none. */
	struct entropy_mark *marks;
	uint32_t step;
};

/*
 * Copies stuffed data up to the first marker, or all of it, without the
 * stuffing, and adds the padding. The buffer has size + ENTROPY_PAD bytes.
 * Returns the number of bytes read, and sets *n to those written.
 */
size_t entropy_unstuff(const uint8_t *bytes, size_t size, uint8_t *out,
		       size_t *n);

/*
 * Decodes a run to its end. Returns NULL, or a message; then samples, run and
 * marks are undefined.
 */
const char *entropy_decode(const struct entropy_scan *scan,
			   struct entropy_run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entropy-coded data of a baseline JPEG, decoded to samples: the inner loop
 * of baseline.c, which knows where things are and what is wanted. Bytes are
 * hostile: damage is noticed at the end of a run of MCUs at the latest, and
 * until then reads stay within the padding.
 */
#ifndef LOADER_JPEG_SCAN_H
#define LOADER_JPEG_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "loader/jpeg/idct.h"

struct huffman_ac;
struct huffman_dc;

enum {
	SCAN_COMPONENTS = 3,
	SCAN_BLOCKS = 10, /* of an MCU */
	/*
	 * Zeros that follow the data: an MCU of blocks of a DC coefficient of
	 * 27 bits and 63 others of 26 is read before its end is checked, and a
	 * word at a time.
	 */
	SCAN_PAD = SCAN_BLOCKS * (27 + 63 * 26) / 8 + 64,
};

/* Blocks are counted from the component's first; sizes are in blocks. */
struct scan_component {
	_Alignas(IDCT_ALIGN) int16_t quant[IDCT_SIZE]; /* in the IDCT's order */
	const struct huffman_dc *dc;
	const struct huffman_ac *ac;
	idct_fn *idct;		/* of `side` samples; NULL for 1 */
	uint32_t side;		/* of a block */
	uint32_t blocks_across; /* of an MCU */
	uint32_t blocks_down;
	uint32_t x; /* what is wanted */
	uint32_t y;
	uint32_t width;
	uint32_t height;
	uint8_t *samples; /* of block (x, y) */
	size_t stride;
};

struct scan {
	struct scan_component component[SCAN_COMPONENTS];
	unsigned components;
	uint32_t mcus_across;
	/* MCUs that have a block somebody wants. */
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

/* MCUs one after the other, and how far they are decoded. */
struct scan_run {
	const uint8_t *bytes; /* without stuffing; SCAN_PAD zeros follow */
	size_t size;
	uint64_t bit; /* where the next MCU begins */
	uint32_t mcu; /* its number in the image */
	uint32_t n;   /* and how many there are */
	int32_t dc[SCAN_COMPONENTS];
};

/*
 * Copies stuffed data up to the first marker, or all, and adds the padding.
 * Room for size + SCAN_PAD. Returns how many bytes were read; *n are written.
 */
size_t scan_unstuff(const uint8_t *bytes, size_t size, uint8_t *out, size_t *n);

/*
 * Decodes a run; it is then at its end. NULL, or what is wrong with it: samples
 * and run have unspecified values then.
 */
const char *scan_decode(const struct scan *scan, struct scan_run *run);

#endif

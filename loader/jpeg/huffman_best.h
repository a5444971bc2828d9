/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols that coefficients of JPEGs are coded with, counted, and the
 * Huffman tables that code them in the fewest bits. Plain data; counts of
 * several JPEGs may be added up in any order.
 */
#ifndef LOADER_JPEG_HUFFMAN_BEST_H
#define LOADER_JPEG_HUFFMAN_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/jpeg/huffman.h"

/* Tables: two of luma, or of what is coded as it, and two of chroma. */
enum {
	SYMBOLS_DC,
	SYMBOLS_AC,
	SYMBOLS_KINDS,
	SYMBOLS_TABLES = 2 * SYMBOLS_KINDS,
	SYMBOLS_BLOCK = 64,
	SYMBOLS_DEFINITION = HUFFMAN_CODE_MAX + HUFFMAN_SYMBOLS,
};

struct symbols {
	uint64_t counts[SYMBOLS_TABLES][HUFFMAN_SYMBOLS];
};

/* Definitions as in huffman.h; one without symbols is all zeros. */
struct symbols_codes {
	uint8_t definition[SYMBOLS_TABLES][SYMBOLS_DEFINITION];
};

void symbols_add(struct symbols *to, const struct symbols *more);

/*
 * Adds those of a block, its coefficients in natural order; `before` is the DC
 * coefficient of the component's last block.
 */
void symbols_count_block(struct symbols *s, bool chroma, int before,
			 const int16_t *block);

/*
 * The best codes of 16 bits at most. `all`: with those symbols too that do not
 * occur, so that anything can be coded.
 */
void symbols_make_codes(const struct symbols *s, bool all,
			struct symbols_codes *out);

/* What codes and values of all symbols take, all of which must have a code. */
uint64_t symbols_bits(const struct symbols *s,
		      const struct symbols_codes *codes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the symbols that code the coefficients of JPEGs, and makes the Huffman
 * tables that need the fewest bits for them. Plain data: the counts of several
 * JPEGs may be added in any order.
 */
#ifndef LOADER_IMAGE_JPEG_HUFFMAN_BEST_H
#define LOADER_IMAGE_JPEG_HUFFMAN_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/jpeg/huffman.h"

/* Tables: two for luma or its like, and two for chroma. */
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

/* Definitions as in huffman.h; all zeros if there are no symbols. */
struct symbols_codes {
	uint8_t definition[SYMBOLS_TABLES][SYMBOLS_DEFINITION];
};

void symbols_add(struct symbols *to, const struct symbols *more);

/*
 * Adds the symbols of a block of coefficients in natural order. `before` is the
 * DC coefficient of the component's previous block.
 */
void symbols_count_block(struct symbols *s, bool chroma, int before,
			 const int16_t *block);

/*
 * Makes the best codes of at most 16 bits. `all`: symbols that do not occur get
 * codes too, so that anything can be coded.
 */
void symbols_make_codes(const struct symbols *s, bool all,
			struct symbols_codes *out);

/*
 * Returns the bits of the codes and values of all symbols, all of which must
 * have a code.
 */
uint64_t symbols_bits(const struct symbols *s,
		      const struct symbols_codes *codes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huffman tables of JPEG, designed for speed. An AC entry describes the first
 * two symbols of a window of bits, with their values, or the first if both do
 * not fit. In photographs that is 1.5 symbols on average. Most files share
 * their tables, so a set keeps them by their definition. One thread uses a set.
 */
#ifndef LOADER_IMAGE_JPEG_HUFFMAN_H
#define LOADER_IMAGE_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HUFFMAN_CODE_MAX = 16, /* bits of a code */
	HUFFMAN_SYMBOLS = 256,
	/* 10 and 12 are slower: more misses of the window, or of the cache. */
	HUFFMAN_AC_BITS = 11,
	HUFFMAN_DC_BITS = 9, /* bits of a code only */
	/* No encoder writes longer values. */
	HUFFMAN_AC_SIZE_MAX = 10,
	HUFFMAN_DC_SIZE_MAX = 11,
	HUFFMAN_ZEROS = 0xf0, /* the symbol of sixteen zeros */
};

/* Codes of each length: numbers below limit[i] have i bits or fewer. */
struct huffman_codes {
	uint32_t limit[HUFFMAN_CODE_MAX + 1]; /* of 16 bits, left-aligned */
	int32_t first[HUFFMAN_CODE_MAX + 1];  /* symbol of code 0 */
	uint8_t symbols[HUFFMAN_SYMBOLS];
};

/*
 * An AC entry. Coefficients lie `skip` places after the next one; what is not
 * there is a zero, written where there is one anyway.
 */
struct huffman_pair {
	uint8_t bits;	 /* of both symbols */
	uint8_t advance; /* over both; HUFFMAN_END, _MISS */
	uint8_t skip1;
	uint8_t skip2;
	int16_t value1;
	uint8_t bits1; /* of the first symbol */
	int8_t value2;
};

enum {
	/* Added to `advance` where the last symbol is the end of the block. */
	HUFFMAN_END = 128,
	/*
	 * The window does not hold a symbol: `bits` is 0, value1 the symbol and
	 * bits1 the length of its code, or 0 where even that is longer.
	 */
	HUFFMAN_MISS = 192,
};

/*
 * How far to skip if values do not matter: the symbols whose codes lie in the
 * window. The value of the last one may end past it. HUFFMAN_END and _MISS as
 * in an AC entry.
 */
struct huffman_skip {
	uint8_t bits;
	uint8_t advance;
};

struct huffman_ac {
	struct huffman_pair entries[1 << HUFFMAN_AC_BITS];
	struct huffman_skip skips[1 << HUFFMAN_AC_BITS];
	struct huffman_codes codes;
};

/* A DC entry: bits of code and value, and of the value; 0: a longer code. */
struct huffman_dc {
	struct {
		uint8_t bits;
		uint8_t size;
	} entries[1 << HUFFMAN_DC_BITS];
	struct huffman_codes codes;
};

/* Whether an encoder writes this symbol. */
static inline bool huffman_is_ac(uint8_t symbol)
{
	unsigned size = symbol & 15;

	return size ? size <= HUFFMAN_AC_SIZE_MAX
		    : !symbol || symbol == HUFFMAN_ZEROS;
}

struct huffman;

int huffman_open(struct huffman **out);
void huffman_close(struct huffman *h);

/*
 * The tables of a definition: 16 counts of codes by length, and as many
 * symbols, 256 at most. NULL: it is not a code, or has symbols that no encoder
 * writes. A table stays until seven others have been asked for.
 */
const struct huffman_ac *huffman_ac(struct huffman *h,
				    const uint8_t *definition);
const struct huffman_dc *huffman_dc(struct huffman *h,
				    const uint8_t *definition);

/* The size of a definition in bytes, or 0 if it has more symbols than bytes. */
size_t huffman_size(const uint8_t *definition);

/*
 * The length of the code that `window` begins with, its highest bit the first,
 * and its symbol; 0: there is none.
 */
static inline unsigned huffman_find(const struct huffman_codes *codes,
				    uint64_t window, uint8_t *symbol)
{
	uint32_t v = (uint32_t)(window >> (64 - HUFFMAN_CODE_MAX));

	for (unsigned n = 1; n <= HUFFMAN_CODE_MAX; n++)
		if (v < codes->limit[n]) {
			int32_t code = (int32_t)(v >> (HUFFMAN_CODE_MAX - n));

			*symbol = codes->symbols[codes->first[n] + code];
			return n;
		}
	return 0;
}

/*
 * The value of the lowest `size` bits. If the first bit is 0, it is negative.
 */
static inline int32_t huffman_value(uint32_t bits, unsigned size)
{
	uint32_t mask = (1u << size) - 1;

	bits &= mask;
	return (int32_t)bits - (int32_t)(2 * bits <= mask ? mask : 0);
}

#endif

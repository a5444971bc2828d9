/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse DCT of a block of 8 x 8 coefficients: the accurate integer one
 * (ISLOW) of the IJG's library, to the bit as libjpeg-turbo's vector code has
 * it, also where 16 bits overflow, as they can in damaged files only.
 *
 * Coefficients lie in an order of their own, so that vectors are loaded as
 * arithmetic wants them: pairs of rows 7 and 1, 3 and 5, 2 and 6, 0 and 4, of
 * columns 7 1 3 5 0 4 2 6.
 *
 * Reduced transforms give blocks of 4 x 4, 2 x 2 or 1 x 1 samples instead, each
 * the mean of a square of the full block's, before these are rounded: those of
 * the IJG's library at a half, a quarter and an eighth of the size, also to the
 * bit.
 */
#ifndef LOADER_IMAGE_JPEG_IDCT_H
#define LOADER_IMAGE_JPEG_IDCT_H

#include <stddef.h>
#include <stdint.h>

enum {
	IDCT_SIDE = 8,
	IDCT_SIZE = 64,
	IDCT_ALIGN = 32,
	/* Most coefficients that a run of zeros reaches past the end of a
	   block. */
	IDCT_PAST = 32,
};

/*
 * Where the coefficients of the zigzag order lie. All places past the end are
 * the first one after the block.
 */
extern const uint8_t IDCT_PLACE[IDCT_SIZE + IDCT_PAST];

/*
 * Writes `side` rows of as many samples, `stride` apart, and clears the
 * coefficients. Both tables are aligned to IDCT_ALIGN and in the order above.
 */
typedef void idct_fn(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		     size_t stride);

/* The definitions, for any machine, of sides 8, 4 and 2. */
void idct_plain(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		size_t stride);
void idct_plain4(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		 size_t stride);
void idct_plain2(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		 size_t stride);

/* The fastest transform for this machine. A side of 1 has only idct_flat(). */
idct_fn *idct_best(unsigned side);

/*
 * Every sample of a block that has only a DC coefficient; of a side of 1 the
 * only one of any block.
 */
uint8_t idct_flat(int dc, int quant, unsigned side);

#endif

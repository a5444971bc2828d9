/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse DCT of a block of 8 x 8 coefficients: the accurate integer one
 * (ISLOW) of the IJG's library, to the bit as libjpeg-turbo's vector code has
 * it, also where 16 bits overflow, as they can in damaged files only.
 *
 * Coefficients lie in an order of their own, so that vectors are loaded as
 * arithmetic wants them: pairs of rows 7 and 1, 3 and 5, 2 and 6, 0 and 4, of
 * columns 7 1 3 5 0 4 2 6.
 */
#ifndef LOADER_IDCT_H
#define LOADER_IDCT_H

#include <stddef.h>
#include <stdint.h>

enum {
	IDCT_SIDE = 8,
	IDCT_SIZE = 64,
	IDCT_ALIGN = 32,
	/* What a run of zeros can at most lead to past the end of a block. */
	IDCT_PAST = 32,
};

/*
 * Where the coefficients of the zigzag order lie. Places past the end are all
 * the first one past the block.
 */
extern const uint8_t IDCT_PLACE[IDCT_SIZE + IDCT_PAST];

/*
 * Writes 8 rows of 8 samples, `stride` apart, and clears the coefficients. Both
 * tables are aligned to IDCT_ALIGN and in the order above.
 */
typedef void idct_fn(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		     size_t stride);

/* The definition, for any machine. */
void idct_plain(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		size_t stride);

/* The fastest for this machine. */
idct_fn *idct_best(void);

/* Every sample of a block that has only a DC coefficient. */
uint8_t idct_flat(int dc, int quant);

#endif

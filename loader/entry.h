/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places inside the scan of a baseline JPEG where decoding can begin: with an
 * index of them, pixels that nobody wants need not be decoded to get past.
 *
 * An index has an entry for the first MCU of each row of MCUs, and for every
 * `step` MCUs of the row after it. Scans with restart markers have none.
 */
#ifndef LOADER_ENTRY_H
#define LOADER_ENTRY_H

#include <stdint.h>

enum {
	/* Predictors of damaged files only do not fit in so many bits. */
	ENTRY_DC_BITS = 12,
	ENTRY_DC_MIN = -(1 << (ENTRY_DC_BITS - 1)),
	ENTRY_DC_MAX = (1 << (ENTRY_DC_BITS - 1)) - 1,
	/* Bytes from one entry to the next: what a writer has 16 bits for. */
	ENTRY_DELTA_MAX = UINT16_MAX,
};

/* Where an MCU begins, and what the DC coefficients before it were. */
struct entry {
	uint32_t byte; /* from the first of the scan's data, as it is stored */
	uint8_t bit;   /* of that byte, 0 the highest */
	int16_t dc[3]; /* of the components; 0 where there is none */
};

/* Borrowed entries, in the order of the scan. */
struct entry_index {
	const struct entry *entries;
	uint32_t n;
	uint32_t step; /* MCUs; at least 1 */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places inside the scan of a baseline JPEG where decoding can begin: with an
 * index of them, pixels that nobody wants need not be decoded to get past.
 *
 * An index has an entry for the first MCU of each row of MCUs, and for every
 * `step` MCUs of the row after it. Scans with restart markers have none. It may
 * be stored in the JPEG, in a segment that other readers pass over (beton(5)).
 */
#ifndef LOADER_JPEG_ENTRY_INDEX_H
#define LOADER_JPEG_ENTRY_INDEX_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* Predictors of damaged files only do not fit in so many bits. */
	ENTRY_DC_BITS = 12,
	ENTRY_DC_MIN = -(1 << (ENTRY_DC_BITS - 1)),
	ENTRY_DC_MAX = (1 << (ENTRY_DC_BITS - 1)) - 1,
	/* Bytes from one entry to the next, as they are stored. */
	ENTRY_DELTA_MAX = UINT16_MAX,
	ENTRY_MARKER = 0xe9,   /* APP9 */
	ENTRY_SEGMENT = 65533, /* the most bytes that a segment has */
};

/* A segment that holds an index begins with this, and its NUL. */
#define ENTRY_NAME "beton"

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

/* What an index belongs to. */
struct entry_scan {
	const uint8_t *bytes; /* what follows the header of the scan */
	size_t size;
	uint32_t mcus_across;
	uint32_t mcus_down;
	unsigned components; /* 1 or 3 */
};

/* How many entries an index of that step has; 0: that is no step. */
uint64_t entry_count(const struct entry_scan *scan, uint32_t step);

/*
 * Writes what the segment holds, with room for ENTRY_SEGMENT bytes; *size of
 * them. -E2BIG: it does not fit, in all or from one entry to the next.
 */
int entry_emit(const struct entry_index *index, const struct entry_scan *scan,
	       uint8_t *out, size_t *size);

/*
 * What a segment says: its step, if it is of this scan, or 0. The bytes of the
 * scan at all entries are part of its hash, so that a JPEG that was changed and
 * kept its segments is noticed.
 */
uint32_t entry_step(const uint8_t *bytes, size_t size,
		    const struct entry_scan *scan);

/*
 * Reads the entries: room for entry_count() of that step. -EBADMSG: it is not
 * of this scan.
 */
int entry_parse(const uint8_t *bytes, size_t size,
		const struct entry_scan *scan, struct entry *out);

#endif

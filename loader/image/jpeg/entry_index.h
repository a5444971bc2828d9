/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions inside the scan of a baseline JPEG where decoding can begin. A
 * decoder that has an index of them can skip pixels that the caller does not
 * request.
 *
 * An index has an entry for the first MCU of each row of MCUs, and for every
 * `step` MCUs of the row after it. Scans with restart markers have none. A JPEG
 * may contain its index in a segment that other readers skip (beton(5)).
 */
#ifndef LOADER_IMAGE_JPEG_ENTRY_INDEX_H
#define LOADER_IMAGE_JPEG_ENTRY_INDEX_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* Bits of a stored predictor. Only damaged files have larger ones. */
	ENTRY_DC_BITS = 12,
	ENTRY_DC_MIN = -(1 << (ENTRY_DC_BITS - 1)),
	ENTRY_DC_MAX = (1 << (ENTRY_DC_BITS - 1)) - 1,
	/* Most stored bytes from one entry to the next. */
	ENTRY_DELTA_MAX = UINT16_MAX,
	ENTRY_MARKER = 0xe9,   /* APP9 */
	ENTRY_SEGMENT = 65533, /* most bytes of a segment */
};

/* An index segment begins with this name and its NUL. */
#define ENTRY_NAME "beton"

/* Where an MCU begins, and the DC coefficients before it. */
struct entry {
	uint32_t byte; /* from the first of the scan's data, as it is stored */
	uint8_t bit;   /* of that byte, 0 the highest */
	int16_t dc[3]; /* of the components; 0 where there is none */
};

/* Entries in the order of the scan; not owned. */
struct entry_index {
	const struct entry *entries;
	uint32_t n;
	uint32_t step; /* MCUs; at least 1 */
};

/* The scan that an index belongs to. */
struct entry_scan {
	const uint8_t *bytes; /* data after the header of the scan */
	size_t size;
	uint32_t mcus_across;
	uint32_t mcus_down;
	unsigned components; /* 1 or 3 */
	uint32_t index_step; /* of the index in the JPEG; 0: there is none */
};

/* The number of entries of an index of that step. 0: the step is invalid. */
uint64_t entry_count(const struct entry_scan *scan, uint32_t step);

/*
 * Writes the content of the segment to a buffer of ENTRY_SEGMENT bytes, and its
 * size to *size. -E2BIG: the index, or the distance between two entries, does
 * not fit.
 */
int entry_emit(const struct entry_index *index, const struct entry_scan *scan,
	       uint8_t *out, size_t *size);

/*
 * Returns the step of the index in a segment, or 0 if it is not of this scan.
 * Its hash covers the scan's bytes at all entries, so that a JPEG that was
 * changed but kept its segments is noticed.
 */
uint32_t entry_step(const uint8_t *bytes, size_t size,
		    const struct entry_scan *scan);

/*
 * Reads the entries into an array of entry_count() of that step. -EBADMSG: the
 * index is not of this scan.
 */
int entry_parse(const uint8_t *bytes, size_t size,
		const struct entry_scan *scan, struct entry *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parquet's encodings of small integers: the hybrid of repeated and bit-packed
 * values for levels and indexes of dictionaries, and deltas.
 */
#ifndef LOADER_TOOLS_INPUT_PARQUET_RUNS_H
#define LOADER_TOOLS_INPUT_PARQUET_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runs {
	const uint8_t *at;
	const uint8_t *end;
	unsigned width; /* bits of a value, up to 32 */
	uint64_t left;	/* values of this run */
	bool is_packed;
	uint32_t repeated;
	unsigned bit; /* of a packed value at `at` */
};

/* Begins to decode. Returns false if the width is too large. */
bool runs_begin(struct runs *runs, const uint8_t *bytes, size_t size,
		unsigned width);

/* Decodes n values. Returns false if the bytes have fewer. */
bool runs_read(struct runs *runs, uint32_t *out, uint64_t n);

/*
 * Decodes n values of DELTA_BINARY_PACKED, modulo 2^64. Sets *used to the
 * number of bytes. Returns false if the bytes are damaged or have another
 * number of values.
 */
bool deltas_read(const uint8_t *bytes, size_t size, int64_t *out, uint64_t n,
		 size_t *used);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a Python process has read with a library (server.h), column by
 * column, in memory or a file that both processes map. A block is never changed
 * after it was made: the kernel refuses writes to its memory. Its offsets are
 * checked when they are used.
 *
 * All numbers are little-endian and have 8 bytes, offsets count from the
 * beginning of the block, and every part is aligned to 8 bytes:
 *
 *	magic, rows, columns
 *	the errors of the rows, as a column of BLOCK_BYTES: empty if there is none
 *	the columns
 *
 * where a column is {kind, index, data, size}:
 *
 *	BLOCK_INT     data: rows integers
 *	BLOCK_REAL    data: rows floating-point numbers
 *	BLOCK_BYTES   index: rows + 1 offsets into the `size` bytes at data
 *	BLOCK_PIXELS  the same, and after the offsets of each row width, height and
 *	              channels; channels are 0 if the bytes are an image file
 */
#ifndef LOADER_TOOLS_PYTHON_BLOCK_H
#define LOADER_TOOLS_PYTHON_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_kind {
	BLOCK_INT,
	BLOCK_REAL,
	BLOCK_BYTES,
	BLOCK_PIXELS,
};

struct block;

/* A value; which members are set depends on the column. */
struct block_value {
	int64_t integer;
	double real;
	const uint8_t *bytes; /* valid as long as the block */
	uint64_t size;
	uint32_t width;
	uint32_t height;
	uint32_t channels; /* 0: the bytes are an image file, or no image */
};

/* Maps the `size` bytes at `off` of a file, a multiple of the system's page
   size. -EBADMSG: they are no block of so many rows and columns. */
int block_map(int fd, uint64_t off, uint64_t size, uint64_t rows,
	      uint64_t columns, struct block **out);
struct block *block_get(struct block *b); /* another reference */
void block_put(struct block **b);	  /* drops one; takes NULL */

/* The bytes that block_map() has mapped. */
const void *block_bytes(const struct block *b, uint64_t *size);

/* Returns whether a row cannot be read, and copies the reason to `why`. */
bool block_refuses(const struct block *b, uint64_t row, char *why, size_t size);

/* Sets a value. -EBADMSG: the column is damaged. */
int block_value(const struct block *b, uint64_t column, uint64_t row,
		struct block_value *out);

#endif

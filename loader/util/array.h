/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays with a number of rows of their own in bytes fields: their header
 * (struct beton_array_header of <beton/batch.h>), checked.
 */
#ifndef LOADER_UTIL_ARRAY_H
#define LOADER_UTIL_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"

enum {
	ARRAY_HEADER_MAX =
		sizeof(struct beton_array_header) + 8 * BETON_ARRAY_MAX_NDIM,
	ARRAY_TEXT_SIZE = 200,
};

struct array {
	char dtype[4]; /* NumPy's string; empty: it is no array */
	uint32_t ndim;
	uint64_t shape[BETON_ARRAY_MAX_NDIM];
	uint64_t offset; /* of the elements in the value */
};

/*
 * Parses the header of a value of `size` bytes, of which the first `have` are
 * in memory: all of them, or at least ARRAY_HEADER_MAX. Returns false, with
 * *out empty, if the value is no such array.
 */
bool array_parse(const void *bytes, uint64_t have, uint64_t size,
		 struct array *out);

/* Writes the header of an array and returns its size. ndim and the type are
   those that array_parse() accepts. */
size_t array_header(uint8_t out[ARRAY_HEADER_MAX], const char *dtype,
		    uint32_t ndim, const uint64_t *shape);

/* Whether two arrays have the same type, and rows of the same shape. */
bool array_is_alike(const struct array *a, const struct array *b);

/* Prints the type and the shape, such as "<f4 (?, 4)", to `out`. */
const char *array_text(const struct array *a, char out[ARRAY_TEXT_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and writes the header of arrays in bytes fields (struct
 * beton_array_header of <beton/batch.h>).
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
	char dtype[4]; /* NumPy's string; empty: not an array */
	uint32_t ndim;
	uint64_t shape[BETON_ARRAY_MAX_NDIM];
	uint64_t offset; /* of the elements in the value */
};

/*
 * Parses the header of a value of `size` bytes. The first `have` bytes are in
 * memory: all of them, or at least ARRAY_HEADER_MAX. If the value is not such
 * an array, returns false and empties *out.
 */
bool array_parse(const void *bytes, uint64_t have, uint64_t size,
		 struct array *out);

/* Writes the header of an array and returns its size. array_parse() must accept
   the ndim and the type. */
size_t array_header(uint8_t out[ARRAY_HEADER_MAX], const char *dtype,
		    uint32_t ndim, const uint64_t *shape);

/* Whether two arrays have the same type, and rows of the same shape. */
bool array_is_alike(const struct array *a, const struct array *b);

/* Prints the type and the shape, such as "<f4 (?, 4)", to `out`. */
const char *array_text(const struct array *a, char out[ARRAY_TEXT_SIZE]);

#endif

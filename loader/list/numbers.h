/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in JSON texts: an array of them, or of arrays of one shape. */
#ifndef LOADER_LIST_NUMBERS_H
#define LOADER_LIST_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum { NUMBERS_NDIM_MAX = 8 };

/* A number; whole ones that fit are exact. */
struct number {
	bool is_whole;
	int64_t whole;
	double real;
};

/* Gets the numbers in their order. Returns why one is refused, or NULL. */
typedef const char *numbers_fn(const struct number *number, void *arg);

/*
 * Reads a text of `size` bytes: an array of rows, each with the shape
 * shape[ndim]; ndim 0: of numbers. Counts the rows. Returns why the text is
 * refused, or NULL.
 */
const char *numbers_read(const char *text, uint64_t size, uint32_t ndim,
			 const uint64_t *shape, numbers_fn *each, void *arg,
			 uint64_t *rows);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the numbers of a JSON text: an array of numbers, or of arrays of one
   shape. */
#ifndef LOADER_PIPELINE_LIST_NUMBERS_H
#define LOADER_PIPELINE_LIST_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum { NUMBERS_NDIM_MAX = 8 };

/* A number. Whole numbers that fit into int64_t are exact. */
struct number {
	bool is_whole;
	int64_t whole;
	double real;
};

/* Receives the numbers in order. Returns the reason why it refuses a number, or
   NULL. */
typedef const char *numbers_fn(const struct number *number, void *arg);

/*
 * Reads a text of `size` bytes: an array of rows of the shape shape[ndim], or
 * of numbers if ndim is 0. Sets the number of rows. Returns the reason why it
 * refuses the text, or NULL.
 */
const char *numbers_read(const char *text, uint64_t size, uint32_t ndim,
			 const uint64_t *shape, numbers_fn *each, void *arg,
			 uint64_t *rows);

#endif

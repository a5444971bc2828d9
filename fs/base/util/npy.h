/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file: written in format 1.0, read in formats 1.0 to 3.0.
 */
#ifndef FS_BASE_UTIL_NPY_H
#define FS_BASE_UTIL_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"

/* Room for 32 dimensions of 20 digits and the text around them, rounded up. */
enum { NPY_HEADER_MAX = 1024 };

/* Writes the header, a multiple of 64 bytes, and returns its size. */
size_t npy_header(char out[NPY_HEADER_MAX], const char *dtype, uint32_t ndim,
		  const uint64_t *shape);

struct npy {
	char dtype[BETON_DTYPE_SIZE];
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	size_t offset; /* of the elements */
	bool fortran;  /* the first index varies fastest */
};

/*
 * Parses the header of a .npy file in memory. Returns false if it is not one,
 * is in Fortran order, has fields, or has a dtype or shape that struct npy
 * cannot hold. Does not check that all elements are there.
 */
bool npy_parse(const void *bytes, size_t size, struct npy *out);

/* Like npy_parse(), but accepts Fortran order, too. */
bool npy_parse_any(const void *bytes, size_t size, struct npy *out);

#endif

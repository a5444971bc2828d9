/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file: written in format 1.0, read in all there are. */
#ifndef FS_UTIL_NPY_H
#define FS_UTIL_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"

/* 32 dimensions of 20 digits, and what stands around them, rounded up. */
enum { NPY_HEADER_MAX = 1024 };

/* Writes the header, a multiple of 64 bytes, and returns its size. */
size_t npy_header(char out[NPY_HEADER_MAX], const char *dtype, uint32_t ndim,
		  const uint64_t *shape);

struct npy {
	char dtype[BETON_DTYPE_SIZE];
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	size_t offset; /* of the elements */
};

/*
 * Of a whole file. False: it is none, is in Fortran's order or has fields, or a
 * dtype or shape beyond the above. That there are so many elements is not said.
 */
bool npy_parse(const void *bytes, size_t size, struct npy *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file, format 1.0. */
#ifndef FS_NPY_H
#define FS_NPY_H

#include <stddef.h>
#include <stdint.h>

/* 32 dimensions of 20 digits, and what stands around them, rounded up. */
enum { NPY_HEADER_MAX = 1024 };

/* Writes the header, a multiple of 64 bytes, and returns its size. */
size_t npy_header(char out[NPY_HEADER_MAX], const char *dtype, uint32_t ndim,
		  const uint64_t *shape);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain -> CUDA C: one kernel for a whole batch, a thread for each pixel. The
 * operations are the C code that CPUs run (OP_CODE), and an option of NVRTC
 * disables contraction, so that the bits are the same.
 */
#ifndef LOADER_RUN_JIT_EMIT_DEVICE_H
#define LOADER_RUN_JIT_EMIT_DEVICE_H

#include "loader/pipeline/graph/graph.h"

#define EMIT_DEVICE_NAME "beton_device_pointwise"

/*
 * Threads of a block. Each row of blocks covers the pixels of an image, and
 * there is a row for each image.
 */
enum { EMIT_DEVICE_BLOCK = 256, EMIT_DEVICE_ROWS_MAX = 65535 };

/* The kernel's arguments, in this order. Addresses are the device's. */
struct emit_device_call {
	uint64_t in;	   /* rows of the source's values, */
	uint64_t out;	   /* rows of the result's, */
	uint64_t operands; /* the first row's, float32, by operands_fill(), */
	uint64_t stride;   /* the next row's so many on; 0: all have the same */
	uint64_t made;	   /* a byte per row; 0: the row could not be made, and
			      becomes zeros */
	uint32_t width;
	uint32_t height;
};

/*
 * Emits the kernel of a chain without geometry, whose source is an image of any
 * type and layout. Custom operations are loaded. The caller frees the text;
 * NULL: no memory.
 */
char *emit_device(const struct chain *chain);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of generated code: one function that makes a part of a row of a
 * tensor from 8-bit pixels. Any change here needs a new KERNEL_ABI, because
 * compiled code is kept in files.
 */
#ifndef LOADER_RUN_JIT_KERNEL_H
#define LOADER_RUN_JIT_KERNEL_H

enum {
	KERNEL_ABI = 1,
	/* Pixels that a kernel calculates together. */
	KERNEL_PIXELS = 32,
	/* Flat kernels have interleaved pixels and operands. Each operand is
	   this many numbers, for the channels in turn. */
	KERNEL_LANES = 3 * KERNEL_PIXELS,
};

/* clang-format off */
#define KERNEL_SPAN_CODE						\
	struct beton_span {						\
		const unsigned char *in[3];				\
		void *out[3];						\
		const float *operands;					\
		unsigned count;						\
		unsigned x;						\
		unsigned y;						\
		unsigned width;						\
		unsigned height;					\
	};
/* clang-format on */

/*
 * `count` neighbors of an image of width x height, the first at (x, y). in: a
 * plane per channel; flat kernels: interleaved, in[0]. out: address of the
 * first pixel; planar tensors: a plane per channel, else out[0].
 */
KERNEL_SPAN_CODE

typedef void kernel_fn(const struct beton_span *span);

#define KERNEL_NAME "beton_pointwise"

#endif

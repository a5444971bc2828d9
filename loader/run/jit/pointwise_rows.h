/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a pointwise stage: by its kernel, by a table, by the definitions
 * of the operations, or copied. All make the same bits.
 */
#ifndef LOADER_RUN_JIT_POINTWISE_ROWS_H
#define LOADER_RUN_JIT_POINTWISE_ROWS_H

#include "loader/run/jit/pointwise.h"

/* An image to be written to a tensor. */
struct pointwise_image {
	struct size size;
	bool mirror;		    /* left and right are exchanged */
	const float *operands;	    /* pointwise_operands() */
	const struct byte_map *map; /* pointwise_map() */
	void *out; /* the tensor of the whole image: width * height * 3 values
		      aligned as their type */
	bool is_streamed; /* kernels write it by stream_piece(), and the caller
			     calls stream_fence() after the last band */
};

/*
 * Whether it is faster to stream a tensor of this width: if each row consists of
 * whole lines of the cache, since the CPU reads lines that two rows share, and
 * waits for them. Values of 2 bytes or less had no measurable gain.
 */
bool pointwise_gains_by_stream(const struct pointwise *stage, uint32_t width);

/* Writes the band's rows of the tensor. */
void pointwise_band(const struct pointwise *stage,
		    const struct pointwise_image *image,
		    const struct band *band);

/*
 * Whether the kernel makes the same rows as the definitions, if there are any.
 */
bool pointwise_agrees(const struct pointwise *stage, kernel_fn *run);

#endif

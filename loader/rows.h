/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of a separable resize, one row at a time: a source row is
 * filtered across into a row of numbers, then some of those are filtered down
 * into a row of bytes. What the numbers are is the kind's own business.
 */
#ifndef LOADER_ROWS_H
#define LOADER_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/axis.h"
#include "loader/block.h"

/* Numbers to allocate for a row of `width` pixels: some more are touched. */
size_t rows_size(uint32_t width);

/* One output row and what it is made of. */
struct rows_down {
	const struct axis *x;
	uint32_t taps;		 /* y's */
	const union weight *w;	 /* [taps] */
	const union cell **rows; /* [taps], filtered across */
	union cell *tmp;	 /* x->part.count pixels of scratch */
};

struct rows_class {
	/* From x->span pixels, through as many in tmp, to x->part.count pixels.
	 */
	void (*across)(const struct axis *x, const uint8_t *in, union cell *tmp,
		       union cell *out);
	/* To x->part.count pixels of 3 bytes. */
	void (*down)(const struct rows_down *d, uint8_t *out);
};

/* By the kind of both axes. */
const struct rows_class *rows_class(enum axis_kind kind);

#endif

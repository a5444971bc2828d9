/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of a separable resize, one row at a time: a source row is
 * filtered across into a row of numbers, then some of those are filtered down
 * into a row of bytes. What the numbers are is the class's own business.
 *
 * The plain classes are the definition; those of a machine's own instructions
 * give the same bits.
 */
#ifndef LOADER_RESIZE_ROWS_H
#define LOADER_RESIZE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/resize/axis.h"
#include "loader/util/vec16.h"

/* Numbers to allocate for a row of `width` pixels: some more are touched. */
size_t rows_size(uint32_t width);

/* One source row, and what becomes of it. */
struct rows_across {
	const struct axis *x;
	const void *prepared; /* by prepare() */
	const uint8_t *in;    /* x->span pixels of 3 bytes */
	union cell *tmp;      /* as many of scratch */
	union cell *out;      /* x->part.count pixels */
};

/* One output row and what it is made of. */
struct rows_down {
	const struct axis *x;
	uint32_t taps;		 /* y's */
	const union weight *w;	 /* [taps] */
	const union cell **rows; /* [taps], filtered across */
	union cell *tmp;	 /* x->part.count pixels of scratch */
	uint8_t *out;		 /* as many of 3 bytes */
};

struct rows_class {
	/* Bytes that prepare() fills, of an axis, for across(); NULL: none. */
	size_t (*prepared_size)(const struct axis *x);
	void (*prepare)(const struct axis *x, void *prepared);
	void (*across)(const struct rows_across *a);
	void (*down)(const struct rows_down *d);
};

/* By the kind of both axes: the fastest that this machine can run. */
const struct rows_class *rows_class(enum axis_kind kind);
const struct rows_class *rows_class_plain(enum axis_kind kind);
/* NULL: none, or not on this machine. */
const struct rows_class *rows_class_avx2(enum axis_kind kind);

#endif

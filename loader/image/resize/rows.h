/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of a separable resize, one row at a time. across() filters a
 * source row into a row of numbers; down() filters some of those rows into a
 * row of bytes. Each class has numbers of its own.
 *
 * All variants of a class give the same bits. tests/unit/rows_model.h has the
 * arithmetic in plain C.
 */
#ifndef LOADER_IMAGE_RESIZE_ROWS_H
#define LOADER_IMAGE_RESIZE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/image/resize/axis.h"
#include "loader/util/isa_choice.h"

/* A number between the passes. */
union cell {
	float real;
	int32_t fixed;
};

/*
 * Numbers to allocate for a row of `width` pixels, with the padding that
 * vectors touch.
 */
size_t rows_size(uint32_t width);

/* One source row to filter across. */
struct rows_across {
	const struct axis *x;
	const void *prepared; /* made by prepare() */
	const uint8_t *in;    /* x->span pixels of 3 bytes */
	union cell *tmp;      /* scratch for x->span pixels */
	union cell *out;      /* x->part.count pixels */
};

/* One output row to filter down. */
struct rows_down {
	const struct axis *x;
	uint32_t taps;		 /* taps of the other axis */
	const union weight *w;	 /* [taps] */
	const union cell **rows; /* [taps], filtered across */
	union cell *tmp;	 /* x->part.count pixels of scratch */
	uint8_t *out;		 /* x->part.count pixels of 3 bytes */
};

struct rows_class {
	/* Bytes that prepare() writes for across(). NULL: across() needs
	   none. */
	size_t (*prepared_size)(const struct axis *x);
	void (*prepare)(const struct axis *x, void *prepared);
	void (*across)(const struct rows_across *a);
	void (*down)(const struct rows_down *d);
};

/* The classes by the kind of both axes; none of kinds that are elsewhere. */
struct rows_table {
	struct rows_class of[AXIS_IMAGES];
};

ISA_DECLARE(struct rows_table, rows);
/* For AXIS_CUBIC and AXIS_LANCZOS. */
ISA_DECLARE(struct rows_class, signed_rows);
/* For AXIS_TRIANGLE, if x is a blend. */
ISA_DECLARE(struct rows_class, blend_rows);
/* For AXIS_NEAREST. */
extern const struct rows_class nearest_rows;

/* The fastest class that this machine runs, by the axis of across(). */
const struct rows_class *rows_class(const struct axis *x);

#endif

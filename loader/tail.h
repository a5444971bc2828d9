/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an image's pipeline: pixels -> the values, type and layout of the
 * tensor, each pixel touched once. What the operations after geometry make of
 * one 8-bit value of one channel can be only 256 things, so a chain is turned
 * into a table once, by the operations' own definitions, and the rest is
 * looking up: any chain costs the same, mirrored or not.
 */
#ifndef LOADER_TAIL_H
#define LOADER_TAIL_H

#include <stdbool.h>

#include "loader/graph.h"
#include "loader/image.h"

enum { TAIL_CHANNELS = 3, TAIL_VALUES = 256 };

/* [TAIL_CHANNELS][TAIL_VALUES] elements of one of these sizes in bits. */
union tail_table {
	uint8_t of_8[TAIL_CHANNELS * TAIL_VALUES];
	uint16_t of_16[TAIL_CHANNELS * TAIL_VALUES];
	uint32_t of_32[TAIL_CHANNELS * TAIL_VALUES];
	uint64_t of_64[TAIL_CHANNELS * TAIL_VALUES];
};

struct tail {
	enum dtype dtype; /* of the result */
	enum layout layout;
	bool plain; /* values stay as they are */
	union tail_table table;
};

/* For a chain whose source is an image; geometry is passed over. */
void tail_init(struct tail *tail, const struct chain *chain);

/*
 * Fills `out`, in->width * in->height * 3 values aligned as their type, from
 * `in`, whose left and right are exchanged if `mirror`.
 */
void tail_run(const struct tail *tail, const struct image *in, bool mirror,
	      void *out);

#endif

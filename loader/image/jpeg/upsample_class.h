/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of upsample.c. All of them may read and write up to the next
 * multiple of UPSAMPLE_BLOCK numbers or pixels.
 */
#ifndef LOADER_IMAGE_JPEG_UPSAMPLE_CLASS_H
#define LOADER_IMAGE_JPEG_UPSAMPLE_CLASS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/util/isa_choice.h"

enum {
	UPSAMPLE_BLOCK = 32,
	UPSAMPLE_POINT = 16,
	UPSAMPLE_ZERO_CHROMA = 128,
	/* JFIF's coefficients times 2^16, as libjpeg rounds them. */
	UPSAMPLE_RED_OF_CR = 91881,
	UPSAMPLE_GREEN_OF_CB = -22554,
	UPSAMPLE_GREEN_OF_CR = -46802,
	UPSAMPLE_BLUE_OF_CB = 116130,
};

/* How a sum becomes two samples: (3 here + beside + add) >> shift. */
struct upsample_rule {
	int16_t add_left;
	int16_t add_right;
	int shift;
};

struct upsample_class {
	/* Computes 3 near + far, or near if far is NULL. */
	void (*sum)(const uint8_t *near, const uint8_t *far, size_t n,
		    int16_t *out);
	/* Reads in[-1 .. n], writes out[0 .. 2 n). */
	void (*twice)(const int16_t *in, size_t n, struct upsample_rule rule,
		      uint8_t *out);
	/* Converts n pixels of Y, Cb and Cr to interleaved R, G and B. */
	void (*color)(const uint8_t *const in[3], size_t n, uint8_t *out);
};

ISA_DECLARE(struct upsample_class, fancy);

#endif

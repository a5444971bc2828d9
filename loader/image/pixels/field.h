/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fields: how far each pixel of an image moves. Number i of the stream
 * with a key gives pixel i, row by row, dx = (n >> 40) / 2^23 - 1 and dy, of
 * the 24 bits below, likewise. Both fields are then blurred by a Gaussian of
 * float32 weights, columns first, mirrored about the outermost pixels, and
 * multiplied.
 */
#ifndef LOADER_IMAGE_PIXELS_FIELD_H
#define LOADER_IMAGE_PIXELS_FIELD_H

#include <stdint.h>

enum { FIELD_SIZE_MAX = 1025 };

struct displacement_field {
	uint64_t key;
	double sigma;	/* of the blur, in pixels; at most FIELD_SIGMA_MAX */
	float scale[2]; /* of dx and of dy */
};

static const double FIELD_SIGMA_MAX = 64;

/* Bytes of scratch memory; UINT64_MAX: too large an image. */
uint64_t field_scratch(const struct displacement_field *field, uint32_t width,
		       uint32_t height);

/* Fills the scratch memory, and sets dx and dy to places in it. */
void field_fill(const struct displacement_field *field, uint32_t width,
		uint32_t height, void *scratch, const float *out[2]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding PNGs without loss, of 1, 3 or stored samples of 8 or 16 bits.
 * Input is hostile: whatever the bytes, no call reads outside them, or takes
 * memory beyond what width and height announce.
 */
#ifndef LOADER_IMAGE_CODEC_PNG_H
#define LOADER_IMAGE_CODEC_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/util/scratch.h"

struct png_form {
	/* Classes: the samples as stored, indices of a palette too; of colors
	   the first. Else gray or RGB, and colors of a palette. */
	bool classes;
	unsigned channels; /* 1, or 3 */
	unsigned bytes;	   /* of a sample, 1 or 2, in this machine's order */
};

struct png_size {
	uint32_t width;
	uint32_t height;
};

/* Whether the bytes begin as a PNG does. */
bool png_is(const uint8_t *bytes, size_t size);

/* The size that the header announces. -EBADMSG */
int png_measure(const uint8_t *bytes, size_t size, struct png_size *out);

/*
 * Decodes all of a PNG to memory->bytes, rows without gaps. 16 bits made of 8
 * are 257 times as large; 8 made of 16 are the upper ones, except for classes,
 * which have to fit. -EBADMSG, -ENOMEM; `why` has PNG_WHY_SIZE bytes.
 */
enum { PNG_WHY_SIZE = 160, PNG_SIDE_MAX = 1 << 16 };

int png_decode(const uint8_t *bytes, size_t size, const struct png_form *form,
	       struct buffer *memory, char *why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes image files for mkfs.beton, whose formats are recognized by their
 * first bytes. The pixels are those of Pillow's exif_transpose() and
 * convert('RGB'): upright, gray and palettes expanded, alpha dropped, 16 bits
 * cut to the upper 8, the first of several frames or pages. Input is hostile:
 * no bytes cause a crash, and memory is bounded by the file and twice
 * PICTURE_PIXELS_MAX pixels, as far as the libraries of the formats keep that.
 */
#ifndef LOADER_TOOLS_PICTURE_PICTURE_H
#define LOADER_TOOLS_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/image/codec/codec.h"
#include "loader/util/image.h"

enum {
	PICTURE_PIXELS_MAX = 1 << 30,
	PICTURE_LIST_SIZE = 160,
};

/* A decoder belongs to one thread and keeps its memory from image to image. */
struct picture_decoder;

struct picture {
	struct image image; /* valid until the next call */
	bool plain;	    /* an upright baseline JPEG, gray or RGB: a dataset
			       can hold the file as it is */
};

struct picture_size {
	uint32_t width;
	uint32_t height;
};

/* Returns whether a file's name ends like those of a format, in upper or lower
   case. */
bool picture_has_extension(const char *name);

/* Writes ".jpg, .jpeg, ... or .jxl". Returns `out`. */
const char *picture_extensions(char out[PICTURE_LIST_SIZE]);

/* Prints a line per format that a build may lack, for --version. */
void picture_print_formats(FILE *out);

/* The codec must outlive the decoder. */
int picture_decoder_open(struct codec *codec, struct picture_decoder **out);
void picture_decoder_close(struct picture_decoder *d);

/* -EBADMSG, -ENOTSUP and -EFBIG are the image's fault; -ENOMEM is not. */
int picture_decode(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		   struct picture *out);

/*
 * Checks a file without decoding it. 0: picture_decode() would find it plain
 * and of this size, unless codes of its scan are damaged. Its segments and
 * tables are complete, its scan has enough bytes for all blocks, its restart
 * markers are in order, and its end marker is there. -ENOTSUP: only
 * picture_decode() can decide.
 */
int picture_probe(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		  struct picture_size *out);

/* Returns why the last call failed; valid until the next call. */
const char *picture_message(const struct picture_decoder *d);

#endif

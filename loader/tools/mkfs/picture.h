/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image files -> pixels, for mkfs.beton: JPEG, PNG, WebP, told apart by their
 * first bytes. The pixels are what Pillow's exif_transpose() and convert('RGB')
 * give: upright, gray and palettes spread out, alpha dropped, 16 bits cut to
 * their upper 8. Input is hostile: whatever the bytes, no crash, and no more
 * memory than PICTURE_PIXELS_MAX pixels twice and the file.
 */
#ifndef LOADER_TOOLS_MKFS_PICTURE_H
#define LOADER_TOOLS_MKFS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/codec/codec.h"
#include "loader/util/image.h"

enum {
	/* A dataset has 16 bits for width and for height. */
	PICTURE_SIDE_MAX = 65535,
	PICTURE_PIXELS_MAX = 1 << 30,
};

/* One thread's: keeps its memory from image to image. */
struct picture_decoder;

struct picture {
	struct image image; /* valid until the next call */
	bool plain;	    /* an upright baseline JPEG, gray or RGB: a dataset
			       can hold the file as it is */
};

/* The codec must outlive the decoder. */
int picture_decoder_open(struct codec *codec, struct picture_decoder **out);
void picture_decoder_close(struct picture_decoder *d);

/* -EBADMSG, -ENOTSUP, -EFBIG: the image's fault; -ENOMEM. */
int picture_decode(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		   struct picture *out);

/* Why the last call failed; valid until the next call. */
const char *picture_message(const struct picture_decoder *d);

#endif

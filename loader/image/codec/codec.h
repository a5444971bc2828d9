/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG in and out. No other module includes <jpeglib.h>. Only one thread may
 * use a codec, because it caches decoder state and scratch memory between
 * images. The input is hostile: for any bytes, no call crashes, reads outside
 * them, or takes more memory than width and height announce (65500 x 65500 at
 * most).
 */
#ifndef LOADER_IMAGE_CODEC_CODEC_H
#define LOADER_IMAGE_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/util/image.h"

struct codec;

enum codec_colour {
	CODEC_GRAY,
	CODEC_RGB,  /* three components, of any coding */
	CODEC_CMYK, /* four */
};

/* The content of a JPEG's header. */
struct codec_info {
	uint32_t width;
	uint32_t height;
	enum codec_colour color;
	bool baseline;	      /* 8-bit baseline Huffman, one frame */
	unsigned orientation; /* EXIF tag, 1..8; 1 if there is none */
};

int codec_open(struct codec **out);
void codec_close(struct codec *codec);

/*
 * Reads the header only. -EBADMSG: the bytes are no JPEG that can be decoded.
 */
int codec_probe(struct codec *codec, const uint8_t *bytes, size_t size,
		struct codec_info *out);

/*
 * Decodes the pixels of `rect` into out->pixels (out->width, out->height equal
 * to rect's; the caller's memory): those of a full decode with the accurate
 * integer DCT (ISLOW) and fancy upsampling. Gray becomes RGB; CMYK becomes RGB
 * by (255 - c)(255 - k) / 255. -EBADMSG: not decodable, or damaged where it was
 * looked at (a premature end, bad codes); -ERANGE: rect is not inside.
 */
int codec_decode(struct codec *codec, const uint8_t *bytes, size_t size,
		 const struct rect *rect, struct image *out);

/*
 * As codec_decode(), a few rows at a time. After codec_start(), each
 * codec_rows() returns the next rows of `rect`, at most CODEC_ROWS, in the
 * codec's memory; they are valid until its next call. out->height is 0 after
 * the last. Any other call, and any failure, ends the decoding. The bytes must
 * live until then.
 */
enum { CODEC_ROWS = 8 };

int codec_start(struct codec *codec, const uint8_t *bytes, size_t size,
		const struct rect *rect);
int codec_rows(struct codec *codec, struct image *out);

/*
 * As codec_start(), for rows of one byte a pixel: luma where the JPEG has it,
 * else the gray of its color (loader/util/gray.h).
 */
int codec_start_gray(struct codec *codec, const uint8_t *bytes, size_t size,
		     const struct rect *rect);

/* The reason why the last call failed; valid until the next call. */
const char *codec_message(const struct codec *codec);

/*
 * Encodes as FFCV's writer does: baseline, 4:2:0, standard Huffman tables,
 * JFIF, quality 1..100. *bytes is malloc'ed and the caller's. The same bytes
 * on every run with the same libjpeg-turbo.
 */
int codec_encode(struct codec *codec, const struct image *image,
		 unsigned quality, uint8_t **bytes, size_t *size);

#endif

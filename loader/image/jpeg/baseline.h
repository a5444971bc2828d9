/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder of baseline sequential JPEGs, about twice as fast as
 * libjpeg-turbo's: 8-bit baseline or extended Huffman coding, gray or YCbCr,
 * one scan, chroma as large as luma or half as large in either direction. It
 * decodes the planes of a rectangle, before upsampling and color conversion.
 * The samples are identical to those of libjpeg-turbo's jpeg_read_raw_data()
 * with its accurate integer DCT.
 *
 * For everything else the result is -ENOTSUP: other kinds of JPEG, and data
 * that is damaged, contradictory or merely odd (bytes between segments, a code
 * that no encoder writes, an early end). The caller then calls libjpeg-turbo,
 * which decides whether the data is damaged, so the two cannot disagree. Like
 * codec_decode(), this decoder does not read past the last row of MCUs that it
 * needs.
 *
 * Input is hostile: whatever the bytes, no call reads outside them or takes
 * more memory than their number and the planes, which are no larger than 256
 * times that.
 *
 * A decoder is one thread's: it keeps Huffman tables and memory from image to
 * image, and once these are large enough allocates nothing.
 */
#ifndef LOADER_IMAGE_JPEG_BASELINE_H
#define LOADER_IMAGE_JPEG_BASELINE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/image/jpeg/baseline_header.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/util/image.h"

struct entry_record;

enum {
	/* Bytes on both sides of a plane's rows that may be read; their values
	   do not matter. */
	BASELINE_SLACK = 64,
	BASELINE_REDUCE_MAX = 8,
};

/*
 * Samples [x, x + width) x [y, y + height) of a component, rows `stride` bytes
 * apart. The decoder's memory, valid until its next call; it may be written.
 */
struct baseline_plane {
	uint8_t *samples; /* of (x, y) */
	size_t stride;
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

struct baseline;

int baseline_open(struct baseline **out);
void baseline_close(struct baseline *b);

/*
 * Reads the header and keeps nothing. -ENOTSUP: this decoder cannot decode the
 * JPEG.
 */
int baseline_header(struct baseline *b, const uint8_t *bytes, size_t size,
		    struct baseline_image *out);

/*
 * Decodes planes[0 .. image->components): of each component the samples that
 * cover any of the rectangle's pixels, and `margin` more on each side as far
 * as the component goes. Upsampling as libjpeg's needs a margin of 1 (where
 * across and down are 1 it reads none of it). At the component's own edges,
 * x = 0 or x = width - 1, libjpeg repeats the last sample.
 *
 * `index` may be NULL. If there is one, entropy decoding skips rows above the
 * rectangle and as much as possible of those beside it, and damage there goes
 * unnoticed. An index of another scan causes wrong pixels or -ENOTSUP, nothing
 * worse.
 *
 * -ERANGE: the rectangle is empty or not inside; -ENOTSUP; -ENOMEM.
 */
int baseline_decode(struct baseline *b, const struct baseline_image *image,
		    const struct rect *rect, uint32_t margin,
		    const struct entry_index *index,
		    struct baseline_plane planes[BASELINE_COMPONENTS]);

/*
 * As baseline_decode() with the index in the JPEG, or without one if it has
 * none, with the same results and the same errors. Uses and extends the record,
 * which the caller has checked by entry_record_is_of(); the image has no restart
 * markers.
 */
int baseline_decode_recorded(struct baseline *b,
			     const struct baseline_image *image,
			     const struct rect *rect, uint32_t margin,
			     struct entry_record *record,
			     struct baseline_plane planes[BASELINE_COMPONENTS]);

/*
 * As baseline_decode() without a margin, of luma alone: chroma is parsed, and
 * not transformed.
 */
int baseline_decode_luma(struct baseline *b, const struct baseline_image *image,
			 const struct rect *rect,
			 const struct entry_index *index,
			 struct baseline_plane *plane);

/*
 * Decodes all of every plane. `index` may be NULL; here it does not help, it is
 * compared with what the scan has there. So every part that baseline_decode()
 * gives, with the index or without, is a part of these planes.
 *
 * -ENOTSUP, also if the index is wrong anywhere; -ENOMEM.
 */
int baseline_decode_whole(struct baseline *b,
			  const struct baseline_image *image,
			  const struct entry_index *index,
			  struct baseline_plane planes[BASELINE_COMPONENTS]);

/*
 * Cuts the planes of a rectangle and a margin out of those of the whole image,
 * as baseline_decode() would return them. Rows have BASELINE_SLACK on both
 * sides too.
 */
void baseline_part(const struct baseline_image *image,
		   const struct baseline_plane *whole, const struct rect *rect,
		   uint32_t margin,
		   struct baseline_plane planes[BASELINE_COMPONENTS]);

/* The image's scan, for entry_emit(). */
struct entry_scan baseline_scan(const struct baseline_image *image);

/*
 * The index of an image, for baseline_decode(): an entry every `step` MCUs of
 * each row, or where step is 0 one for each row. Its entries are the decoder's
 * until its next call of this or the next function. -ENOTSUP: damaged or odd
 * anywhere in the scan, with restart markers, or too large for the entries'
 * members.
 */
int baseline_index(struct baseline *b, const struct baseline_image *image,
		   uint32_t step, struct entry_index *out);

/*
 * The index that is stored in the JPEG, the decoder's until its next call of
 * this or the last function. -ENOENT: there is none, or not of this scan, or
 * with restart markers; -ENOMEM.
 */
int baseline_stored_index(struct baseline *b,
			  const struct baseline_image *image,
			  struct entry_index *out);

/*
 * The reason why the last call failed, in one line; valid until the next call.
 */
const char *baseline_message(const struct baseline *b);

#endif

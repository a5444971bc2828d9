/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the rows of a rectangle of pixels in order. The source is an image in
 * memory, the decoder of a JPEG, or the planes of a JPEG. The pixels are
 * bit-identical to those of a full decode.
 */
#ifndef LOADER_RUN_TRANSFORM_SCANLINES_H
#define LOADER_RUN_TRANSFORM_SCANLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/jpeg/baseline.h"
#include "loader/util/image.h"

struct scanlines;

int scanlines_open(struct scanlines **out);
void scanlines_close(struct scanlines *lines);

/* Starts a part of an image, which must outlive the last row. */
void scanlines_of_image(struct scanlines *lines, const struct image *image,
			const struct rect *part);

/*
 * Starts a part of a JPEG, whose bytes must outlive the last row. If decode_ns
 * is not NULL, this and later calls add the time of decoding to it, in
 * nanoseconds. Returns -EBADMSG or -ENOMEM.
 */
int scanlines_of_jpeg(struct scanlines *lines, const uint8_t *bytes,
		      size_t size, const struct rect *part,
		      uint64_t *decode_ns);

/*
 * Starts a part of an image from its planes, which must outlive the last row.
 * The planes must cover the part with a margin of 1 pixel. Requires
 * fancy_can(). Returns -ENOMEM.
 */
int scanlines_of_planes(struct scanlines *lines,
			const struct baseline_image *image,
			const struct baseline_plane *planes,
			const struct rect *part);

/*
 * Checks that the bytes are a decodable JPEG, and reads its size. Returns
 * -EBADMSG.
 */
int scanlines_probe(struct scanlines *lines, const uint8_t *bytes, size_t size,
		    uint32_t *width, uint32_t *height);

/*
 * Returns the next rows, as many as are ready, valid until the next call. After
 * the last row, out->height is 0. Returns -EBADMSG or -ENOMEM.
 */
int scanlines_next(struct scanlines *lines, struct image *out);

/*
 * Returns row y of the rectangle, from right to left if `mirror` is set. Valid
 * until the next call. y must not decrease.
 */
int scanlines_row(struct scanlines *lines, uint32_t y, bool mirror,
		  const uint8_t **pixels);

/* Returns the reason of the last failure. Valid until the next call. */
const char *scanlines_message(const struct scanlines *lines);

#endif

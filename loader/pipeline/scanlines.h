/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a rectangle of pixels, one after the other. They come from an
 * image in memory, from a JPEG while it is decoded, or from a JPEG's planes;
 * all are to the bit those of a full decode.
 */
#ifndef LOADER_PIPELINE_SCANLINES_H
#define LOADER_PIPELINE_SCANLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/jpeg/baseline.h"
#include "loader/util/image.h"

struct scanlines;

int scanlines_open(struct scanlines **out);
void scanlines_close(struct scanlines *lines);

/* Starts on `part` of an image, which must outlive the last row. */
void scanlines_of_image(struct scanlines *lines, const struct image *image,
			const struct rect *part);

/*
 * Starts on `part` of a JPEG, whose bytes must outlive the last row. Adds the
 * time of decoding, now and later, to *decode_ns, if that is not NULL.
 * -EBADMSG, -ENOMEM.
 */
int scanlines_of_jpeg(struct scanlines *lines, const uint8_t *bytes,
		      size_t size, const struct rect *part,
		      uint64_t *decode_ns);

/*
 * Starts on `part` of an image from its planes, which must outlive the last
 * row. They were decoded for the part with a margin of 1. Requires fancy_can().
 * -ENOMEM.
 */
int scanlines_of_planes(struct scanlines *lines,
			const struct baseline_image *image,
			const struct baseline_plane *planes,
			const struct rect *part);

/*
 * Checks that the bytes are a JPEG that can be decoded, and finds its size.
 * -EBADMSG
 */
int scanlines_probe(struct scanlines *lines, const uint8_t *bytes, size_t size,
		    uint32_t *width, uint32_t *height);

/*
 * The next rows, as many as are ready, valid until the next call. out->height
 * is 0 after the last. -EBADMSG, -ENOMEM.
 */
int scanlines_next(struct scanlines *lines, struct image *out);

/*
 * Row y of the rectangle, from right to left if `mirror`; valid until the next
 * call. y must not decrease.
 */
int scanlines_row(struct scanlines *lines, uint32_t y, bool mirror,
		  const uint8_t **pixels);

/* The reason why the last call failed; valid until the next call. */
const char *scanlines_message(const struct scanlines *lines);

#endif

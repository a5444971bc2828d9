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

struct lines;

int lines_open(struct lines **out);
void lines_close(struct lines *lines);

/* Starts on `part` of an image, which is borrowed. */
void lines_of_image(struct lines *lines, const struct image *image,
		    const struct rect *part);

/*
 * Starts on `part` of a JPEG, which is borrowed. Adds the time of decoding, now
 * and later, to *decode_ns, if that is not NULL. -EBADMSG, -ENOMEM.
 */
int lines_of_jpeg(struct lines *lines, const uint8_t *bytes, size_t size,
		  const struct rect *part, uint64_t *decode_ns);

/*
 * Starts on `part` of an image from its planes. They were decoded for the part
 * with a margin of 1, and are borrowed. Requires fancy_can(). -ENOMEM.
 */
int lines_of_planes(struct lines *lines, const struct baseline_image *image,
		    const struct baseline_plane *planes,
		    const struct rect *part);

/*
 * Checks that the bytes are a JPEG that can be decoded, and finds its size.
 * -EBADMSG
 */
int lines_probe(struct lines *lines, const uint8_t *bytes, size_t size,
		uint32_t *width, uint32_t *height);

/*
 * The next rows, as many as are ready, valid until the next call. out->height
 * is 0 after the last. -EBADMSG, -ENOMEM.
 */
int lines_next(struct lines *lines, struct image *out);

/*
 * Row y of the rectangle, from right to left if `mirror`; valid until the next
 * call. y must not decrease.
 */
int lines_row(struct lines *lines, uint32_t y, bool mirror,
	      const uint8_t **pixels);

/* The reason why the last call failed; valid until the next call. */
const char *lines_message(const struct lines *lines);

#endif

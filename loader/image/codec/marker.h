/* SPDX-License-Identifier: Apache-2.0 */
/* The segments before a JPEG's picture data. Input is hostile. */
#ifndef LOADER_IMAGE_CODEC_MARKER_H
#define LOADER_IMAGE_CODEC_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum marker {
	MARKER_SOF0 = 0xc0, /* baseline; SOF1 to SOF15 follow */
	MARKER_DHT = 0xc4,  /* among them, but no frames */
	MARKER_JPG = 0xc8,
	MARKER_DAC = 0xcc,
	MARKER_SOF15 = 0xcf,
	MARKER_SOI = 0xd8,
	MARKER_EOI = 0xd9,
	MARKER_SOS = 0xda,
	MARKER_APP1 = 0xe1,
};

struct marker_segment {
	unsigned marker;
	const uint8_t *bytes; /* content after the length; not owned */
	size_t size;
};

/* The position of a walk over segments, initially { bytes, size, 0 }. */
struct marker_walk {
	const uint8_t *bytes;
	size_t size;
	size_t at;
};

/*
 * The next segment. False at the first SOS, at EOI and at the end of the bytes.
 */
bool codec_marker_next(struct marker_walk *walk, struct marker_segment *out);

/* The marker of the first frame header; 0 if there is none. */
unsigned codec_marker_frame(const uint8_t *bytes, size_t size);

/* Whether an end marker follows the first scan: a file that was cut has none.
 */
bool codec_marker_ends(const uint8_t *bytes, size_t size);

#endif

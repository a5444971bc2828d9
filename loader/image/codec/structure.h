/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a JPEG without decoding it: its segments, its frame, and the markers
 * in and behind its scans. Input is hostile.
 */
#ifndef LOADER_IMAGE_CODEC_STRUCTURE_H
#define LOADER_IMAGE_CODEC_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum structure_part {
	STRUCTURE_SOUND,
	STRUCTURE_START,  /* the bytes do not begin like a JPEG */
	STRUCTURE_HEADER, /* a segment, or one that is missing */
	STRUCTURE_SCAN,	  /* a marker in the data of a scan */
	STRUCTURE_END,	  /* no end marker */
};

struct structure {
	bool has_frame;
	uint32_t width; /* of the frame */
	uint32_t height;
	const char *why;
	size_t at; /* offset of the fault */
};

/*
 * Returns the first part with a fault. A decoder may accept a JPEG with a fault
 * in its scan or without an end marker, for example if all data is there.
 * Bytes behind the end marker are ignored.
 */
enum structure_part codec_structure(const uint8_t *bytes, size_t size,
				    struct structure *out);

#endif

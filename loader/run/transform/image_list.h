/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several images in a value of bytes, beton-grids(7): "betonimg", their
 * number and each one's size as 32-bit numbers, little-endian, then the images.
 * Other bytes are a list of one.
 */
#ifndef LOADER_RUN_TRANSFORM_IMAGE_LIST_H
#define LOADER_RUN_TRANSFORM_IMAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct image_list {
	const uint8_t *bytes; /* bytes of the value; not owned */
	uint64_t size;
	uint32_t count; /* at least 1 */
	bool is_one;	/* the value is a single image */
};

enum { IMAGE_LIST_MAX = 1 << 20 };

/* Parses the value. Returns -EBADMSG if the sizes contradict the value. */
int image_list_read(const uint8_t *bytes, uint64_t size,
		    struct image_list *out);

/* Returns the bytes of image i, below count. */
const uint8_t *image_list_at(const struct image_list *list, uint32_t i,
			     uint64_t *size);

#endif

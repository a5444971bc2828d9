/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cached image in one block of memory that never moves. It contains the
 * planes of a whole baseline JPEG, or pixels, and the view of them.
 */
#ifndef LOADER_RUN_TRANSFORM_CACHED_IMAGE_H
#define LOADER_RUN_TRANSFORM_CACHED_IMAGE_H

#include <stdbool.h>

#include "loader/image/jpeg/baseline.h"
#include "loader/util/image.h"

/* The samples follow the struct. */
struct cached_image {
	uint32_t width; /* of the value that is its source */
	uint32_t height;
	struct rect view; /* view, as in a frame */
	bool mirror;
	bool has_planes; /* planes of `jpeg`; else `image` */
	struct image image;
	struct baseline_image jpeg; /* has no pointers to bytes of the JPEG */
	struct baseline_plane planes[BASELINE_COMPONENTS];
};

/* Return the bytes of the struct with its samples. */
uint64_t cached_image_size_of_planes(const struct baseline_image *jpeg);
uint64_t cached_image_size_of_pixels(uint32_t width, uint32_t height);

/* Copies the planes of a whole JPEG. */
void cached_image_take_planes(struct cached_image *k,
			      const struct baseline_image *jpeg,
			      const struct baseline_plane *planes);

/* Describes kept->image of a size. The caller writes its pixels. */
void cached_image_take_pixels(struct cached_image *k, uint32_t width,
			      uint32_t height);

#endif

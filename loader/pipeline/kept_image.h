/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of an image from epoch to epoch, in one piece of memory that
 * never moves: the planes of a whole ordinary JPEG, or pixels, and what of them
 * is looked at.
 */
#ifndef LOADER_PIPELINE_KEPT_IMAGE_H
#define LOADER_PIPELINE_KEPT_IMAGE_H

#include <stdbool.h>

#include "loader/jpeg/baseline.h"
#include "loader/util/image.h"

/* Its samples stand behind it. */
struct kept {
	uint32_t width; /* of the value that it was made of */
	uint32_t height;
	struct rect view; /* as a frame's */
	bool mirror;
	bool has_planes; /* of `jpeg`; else `image` */
	struct image image;
	struct baseline_image jpeg; /* borrows nothing */
	struct baseline_plane planes[BASELINE_COMPONENTS];
};

/* Bytes of one whole, with its samples. */
uint64_t kept_size_of_planes(const struct baseline_image *jpeg);
uint64_t kept_size_of_pixels(uint32_t width, uint32_t height);

/* Copies the planes of a whole JPEG. */
void kept_take_planes(struct kept *k, const struct baseline_image *jpeg,
		      const struct baseline_plane *planes);

/* Makes kept->image of a size; its pixels are for the caller to fill. */
void kept_take_pixels(struct kept *k, uint32_t width, uint32_t height);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/cached_image.h"

#include <string.h>

enum { CHANNELS = 3 };

/* Rows have no gaps, because the cache would store gaps too. */
static uint64_t plane_size(const struct baseline_component *c)
{
	return (uint64_t)c->width * c->height;
}

/* The struct itself is the slack before the first plane. */
_Static_assert(sizeof(struct cached_image) >= BASELINE_SLACK, "slack");

uint64_t cached_image_size_of_planes(const struct baseline_image *jpeg)
{
	uint64_t size = sizeof(struct cached_image) + BASELINE_SLACK;

	for (unsigned i = 0; i < jpeg->components; i++)
		size += plane_size(&jpeg->component[i]);
	return size;
}

uint64_t cached_image_size_of_pixels(uint32_t width, uint32_t height)
{
	return sizeof(struct cached_image) +
	       (uint64_t)width * height * CHANNELS;
}

/*
 * Copies the description without its pointers into the JPEG, because only
 * decoding needs them.
 */
static struct baseline_image without_bytes(const struct baseline_image *jpeg)
{
	struct baseline_image out = *jpeg;

	for (unsigned i = 0; i < BASELINE_COMPONENTS; i++) {
		out.component[i].quant = NULL;
		out.component[i].dc = NULL;
		out.component[i].ac = NULL;
	}
	out.scan = NULL;
	out.scan_size = 0;
	out.index = NULL;
	out.index_size = 0;
	return out;
}

void cached_image_take_planes(struct cached_image *k,
			      const struct baseline_image *jpeg,
			      const struct baseline_plane *planes)
{
	uint8_t *to = (uint8_t *)(k + 1);

	k->has_planes = true;
	k->jpeg = without_bytes(jpeg);
	for (unsigned i = 0; i < jpeg->components; i++) {
		const struct baseline_plane *from = &planes[i];
		struct baseline_plane *out = &k->planes[i];

		*out = *from;
		out->samples = to;
		out->stride = from->width;
		for (uint32_t y = 0; y < from->height; y++, to += out->stride)
			memcpy(to, from->samples + y * from->stride,
			       from->width);
	}
}

void cached_image_take_pixels(struct cached_image *k, uint32_t width,
			      uint32_t height)
{
	k->has_planes = false;
	k->image = (struct image){
		.pixels = (uint8_t *)(k + 1),
		.width = width,
		.height = height,
		.stride = (size_t)width * CHANNELS,
	};
}

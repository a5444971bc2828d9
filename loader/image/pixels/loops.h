/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops over pixels, compiled once per instruction set. */
#ifndef LOADER_IMAGE_PIXELS_LOOPS_H
#define LOADER_IMAGE_PIXELS_LOOPS_H

#include "loader/util/image.h"
#include "loader/util/isa_choice.h"

struct byte_map;

/* A histogram of each channel. */
struct pixel_counts {
	uint32_t of[IMAGE_CHANNELS][256];
};

/* The least and the greatest values of a channel are in every third place: as
   many as vectors have. */
enum { EXTREMES = 48 };

struct pixel_extremes {
	uint8_t low[EXTREMES];
	uint8_t high[EXTREMES];
};

struct pixel_loops {
	/* Blends `count` bytes with `base`. */
	void (*blend)(uint8_t *bytes, size_t count, float base, float factor);
	/* Blends pixels with their gray. */
	void (*blend_gray)(uint8_t *pixels, size_t count, float factor);
	/* Blends bytes with those of another image. */
	void (*blend_bytes)(uint8_t *bytes, const uint8_t *base, size_t count,
			    float factor);
	/* The sum of the grays. */
	uint64_t (*gray_sum)(const uint8_t *pixels, size_t count);
	/* The sum of FFCV's grays, floor(0.2989 R + 0.587 G + 0.114 B) in
	   float32. */
	uint64_t (*level_sum)(const uint8_t *pixels, size_t count);
	/* A map of each channel. */
	void (*map_channels)(const struct byte_map *maps, uint8_t *pixels,
			     size_t count);
	/* Lowers and raises what is there to the values of pixels. */
	void (*extremes)(const uint8_t *pixels, size_t count,
			 struct pixel_extremes *extremes);
	/* Adds pixels to a histogram. */
	void (*count)(const uint8_t *pixels, size_t count,
		      struct pixel_counts *counts);
	/* Any map. `out` may be `in`. */
	void (*map)(const struct byte_map *map, const uint8_t *in, size_t count,
		    uint8_t *out);
	/* v ^ flip, where v is at least `from`. */
	void (*flip)(uint8_t *bytes, size_t count, uint8_t from);
	void (*mask)(uint8_t *bytes, size_t count, uint8_t keep);
	/* The mean of 3 x 3 pixels, where the middle one counts 5 times, for
	   `count` bytes of rows[1], whose left and right neighbors exist. */
	void (*smooth)(const uint8_t *const rows[3], size_t count,
		       uint8_t *out);
};

ISA_DECLARE(struct pixel_loops, pixel_loops);

#endif

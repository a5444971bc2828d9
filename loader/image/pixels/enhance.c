/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/enhance.h"

#include <string.h>

#include "loader/image/pixels/byte_map.h"
#include "loader/image/pixels/loops.h"

/* Calls a loop with each row of an image. */
#define FOR_ROWS(row, image)                                                   \
	for (uint8_t *row = (image)->pixels,                                   \
		     *end_ = row + (image)->height * (image)->stride;          \
	     row < end_; row += (image)->stride)

static size_t row_bytes(const struct image *image)
{
	return IMAGE_CHANNELS * (size_t)image->width;
}

uint64_t enhance_level_sum(const struct image *image)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	uint64_t sum = 0;

	FOR_ROWS(row, image)
	sum += loops->level_sum(row, image->width);
	return sum;
}

void enhance_scale(const struct image *image,
		   const uint8_t table[ENHANCE_VALUES], double factor,
		   double add)
{
	struct byte_map map;

	byte_map_init_scale(&map, table, factor, add);
	FOR_ROWS(row, image)
	byte_map_run(&map, row, row_bytes(image), row);
}

static void fill_identity(uint8_t table[ENHANCE_VALUES])
{
	for (unsigned v = 0; v < ENHANCE_VALUES; v++)
		table[v] = (uint8_t)v;
}

static void blend_with(const struct image *image, float base, float factor)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	uint8_t table[ENHANCE_VALUES];

	if (factor == 1)
		return;
	fill_identity(table);
	loops->blend(table, ENHANCE_VALUES, base, factor);
	enhance_scale(image, table, factor, base - (double)factor * base);
}

void enhance_brightness(const struct image *image, float factor)
{
	blend_with(image, 0, factor);
}

void enhance_contrast(const struct image *image, float factor)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	uint64_t sum = 0, count = (uint64_t)image->width * image->height;

	if (factor == 1)
		return;
	FOR_ROWS(row, image)
	sum += loops->gray_sum(row, image->width);
	blend_with(image, (float)((2 * sum + count) / (2 * count)), factor);
}

void enhance_saturation(const struct image *image, float factor)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);

	if (factor == 1)
		return;
	FOR_ROWS(row, image)
	loops->blend_gray(row, image->width, factor);
}

/* The rows above and here as they were, and the result of smoothing. */
enum { SCRATCH_ROWS = 3 };

uint64_t enhance_scratch(uint32_t width)
{
	return SCRATCH_ROWS * IMAGE_CHANNELS * (uint64_t)width;
}

/* Smoothing leaves the pixels of the border as they are. */
void enhance_sharpness(const struct image *image, float factor, void *scratch)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	size_t size = row_bytes(image);
	uint8_t *above = scratch, *here = above + size, *smooth = here + size;

	if (factor == 1 || image->width < 3 || image->height < 3)
		return;
	memcpy(above, image->pixels, size);
	for (uint32_t y = 1; y + 1 < image->height; y++) {
		uint8_t *row = image->pixels + y * image->stride, *swap = above;
		const uint8_t *const rows[] = { above + IMAGE_CHANNELS,
						here + IMAGE_CHANNELS,
						row + image->stride +
							IMAGE_CHANNELS };

		memcpy(here, row, size);
		loops->smooth(rows, size - 2 * IMAGE_CHANNELS, smooth);
		loops->blend_bytes(row + IMAGE_CHANNELS, smooth,
				   size - 2 * IMAGE_CHANNELS, factor);
		above = here;
		here = swap;
	}
}

static void map_channels(const struct image *image,
			 const struct byte_map maps[IMAGE_CHANNELS])
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);

	FOR_ROWS(row, image)
	loops->map_channels(maps, row, image->width);
}

/* Replaces each value of a channel by its entry. */
static void look_up(const struct image *image,
		    const uint8_t tables[IMAGE_CHANNELS][ENHANCE_VALUES])
{
	struct byte_map maps[IMAGE_CHANNELS];

	for (unsigned c = 0; c < IMAGE_CHANNELS; c++)
		byte_map_init(&maps[c], tables[c]);
	map_channels(image, maps);
}

static void count_image(const struct image *image, struct pixel_counts *counts)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);

	memset(counts, 0, sizeof(*counts));
	FOR_ROWS(row, image)
	loops->count(row, image->width, counts);
}

static void stretch(unsigned low, unsigned high, struct byte_map *map)
{
	uint8_t table[ENHANCE_VALUES];
	double scale;

	fill_identity(table);
	if (high <= low) {
		byte_map_init(map, table);
		return;
	}
	scale = 255.0 / (high - low);
	for (unsigned v = 0; v < ENHANCE_VALUES; v++) {
		double to = v * scale + -(double)low * scale;

		table[v] = (uint8_t)(to < 0 ? 0 : to > 255 ? 255 : to);
	}
	byte_map_init_scale(map, table, scale, -(double)low * scale);
}

static void fill_equalized(const uint32_t counts[ENHANCE_VALUES],
			   uint8_t table[ENHANCE_VALUES])
{
	unsigned last = ENHANCE_VALUES - 1;
	uint64_t sum = 0, step, n;

	for (unsigned v = 0; v < ENHANCE_VALUES; v++)
		sum += counts[v];
	while (last && !counts[last])
		last--;
	step = (sum - counts[last]) / (ENHANCE_VALUES - 1);
	fill_identity(table);
	if (!step)
		return;
	n = step / 2;
	for (unsigned v = 0; v < ENHANCE_VALUES; n += counts[v++])
		table[v] = (uint8_t)(n / step < 255 ? n / step : 255);
}

void enhance_autocontrast(const struct image *image)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	struct byte_map maps[IMAGE_CHANNELS];
	struct pixel_extremes e;

	memset(e.low, 255, EXTREMES);
	memset(e.high, 0, EXTREMES);
	FOR_ROWS(row, image)
	loops->extremes(row, image->width, &e);
	for (unsigned c = 0; c < IMAGE_CHANNELS; c++) {
		uint8_t low = 255, high = 0;

		for (unsigned k = c; k < EXTREMES; k += IMAGE_CHANNELS) {
			low = e.low[k] < low ? e.low[k] : low;
			high = e.high[k] > high ? e.high[k] : high;
		}
		stretch(low, high, &maps[c]);
	}
	map_channels(image, maps);
}

void enhance_equalize(const struct image *image)
{
	uint8_t tables[IMAGE_CHANNELS][ENHANCE_VALUES];
	struct pixel_counts counts;

	count_image(image, &counts);
	for (unsigned c = 0; c < IMAGE_CHANNELS; c++)
		fill_equalized(counts.of[c], tables[c]);
	look_up(image, tables);
}

void enhance_invert(const struct image *image)
{
	enhance_solarize(image, 0);
}

void enhance_solarize(const struct image *image, double threshold)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);
	unsigned from = 0;

	while (from < ENHANCE_VALUES && from < threshold)
		from++;
	if (from == ENHANCE_VALUES)
		return;
	FOR_ROWS(row, image)
	loops->flip(row, row_bytes(image), (uint8_t)from);
}

void enhance_posterize(const struct image *image, unsigned bits)
{
	const struct pixel_loops *loops = ISA_BEST(pixel_loops);

	FOR_ROWS(row, image)
	loops->mask(row, row_bytes(image), (uint8_t)(0xff00 >> bits));
}

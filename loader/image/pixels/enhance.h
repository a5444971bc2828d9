/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of all pixels of an 8-bit RGB image, in place, with the results of
 * Pillow's ImageEnhance and ImageOps, and so of torchvision's on images of
 * Pillow: to the bit.
 *
 * A blend by a factor f is base + f * (v - base) in float32, limited to 0..255
 * and truncated; f = 1 changes nothing. Gray is
 * (19595 R + 38470 G + 7471 B + 32768) >> 16.
 */
#ifndef LOADER_IMAGE_PIXELS_ENHANCE_H
#define LOADER_IMAGE_PIXELS_ENHANCE_H

#include "loader/util/image.h"

enum { ENHANCE_VALUES = 256 };

/* Blends with black, with the rounded mean of all grays, with each pixel's own
   gray, and with the image smoothed by 3 x 3 pixels. */
void enhance_brightness(const struct image *image, float factor);
void enhance_contrast(const struct image *image, float factor);
void enhance_saturation(const struct image *image, float factor);
/* `scratch` has enhance_scratch() bytes. */
void enhance_sharpness(const struct image *image, float factor, void *scratch);
uint64_t enhance_scratch(uint32_t width);

/* The least and the greatest value of each channel become 0 and 255. */
void enhance_autocontrast(const struct image *image);
/* The values of each channel become as frequent as each other. */
void enhance_equalize(const struct image *image);

/* 255 - v for all v, or for those that are at least `threshold`. */
void enhance_invert(const struct image *image);
void enhance_solarize(const struct image *image, double threshold);
/* Keeps the upper bits, 0 to 8. */
void enhance_posterize(const struct image *image, unsigned bits);

/* The sum of floor(0.2989 R + 0.587 G + 0.114 B) of all pixels, in float32. */
uint64_t enhance_level_sum(const struct image *image);

/* Replaces each value by its entry, which is about factor * v + add. */
void enhance_scale(const struct image *image,
		   const uint8_t table[ENHANCE_VALUES], double factor,
		   double add);

#endif

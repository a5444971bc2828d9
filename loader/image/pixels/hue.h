/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the hues of an 8-bit RGB image, in place, by way of Pillow's HSV of 8
 * bits: to the bit as torchvision's adjust_hue() for images of Pillow.
 */
#ifndef LOADER_IMAGE_PIXELS_HUE_H
#define LOADER_IMAGE_PIXELS_HUE_H

#include "loader/util/image.h"

/* A hue is a number from 0 to 255; `by` is added to it, modulo 256. */
void hue_turn(const struct image *image, uint8_t by);

#endif

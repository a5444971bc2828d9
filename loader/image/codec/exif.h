/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation of an image in its EXIF data. */
#ifndef LOADER_IMAGE_CODEC_EXIF_H
#define LOADER_IMAGE_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/*
 * The orientation, 1..8, in the content of an APP1 segment ("Exif\0\0" and a
 * TIFF file). 1 if it has none or an invalid one.
 */
unsigned exif_orientation(const uint8_t *segment, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a JPEG's planes into rows of pixels, to the bit as libjpeg-turbo does:
 * triangle ("fancy") upsampling of chroma, then JFIF's conversion of colors in
 * 16-bit fixed point.
 *
 * One thread uses a fancy, which keeps its memory from image to image.
 */
#ifndef LOADER_IMAGE_JPEG_UPSAMPLE_H
#define LOADER_IMAGE_JPEG_UPSAMPLE_H

#include <stdbool.h>

#include "loader/image/jpeg/baseline.h"

struct upsample;

int upsample_open(struct upsample **out);
void upsample_close(struct upsample *f);

/* Whether every libjpeg-turbo upsamples these components alike. */
bool upsample_can(const struct baseline_image *image);

/*
 * Starts on the pixels of `rect`. The planes were decoded for it with a margin
 * of 1, and live until the last upsample_row(). Requires upsample_can().
 * -ENOMEM.
 */
int upsample_start(struct upsample *f, const struct baseline_image *image,
		   const struct baseline_plane *planes,
		   const struct rect *rect);

/* Row y of the rectangle, valid until the next call. */
const uint8_t *upsample_row(struct upsample *f, uint32_t y);

/* For tests: use these inner loops instead of the fastest. */
struct upsample_class;
void upsample_use(struct upsample *f, const struct upsample_class *class);

#endif

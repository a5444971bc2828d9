/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JPEG's planes to rows of pixels, to the bit as libjpeg-turbo does it:
 * chroma upsampled by the triangle ("fancy"), then JFIF's conversion of colours
 * in 16-bit fixed point.
 *
 * A fancy is one thread's: it keeps memory from image to image.
 */
#ifndef LOADER_JPEG_UPSAMPLE_H
#define LOADER_JPEG_UPSAMPLE_H

#include <stdbool.h>

#include "loader/jpeg/baseline.h"

struct fancy;

int fancy_open(struct fancy **out);
void fancy_close(struct fancy *f);

/* Whether the samples lie as every libjpeg-turbo upsamples them alike. */
bool fancy_can(const struct baseline_image *image);

/*
 * The pixels of `rect`, of planes that were decoded for it with a margin of 1
 * and live as long as they are asked for. Requires fancy_can(). -ENOMEM.
 */
int fancy_start(struct fancy *f, const struct baseline_image *image,
		const struct baseline_plane *planes, const struct rect *rect);

/* Row y of the rectangle, valid until the next call. */
const uint8_t *fancy_row(struct fancy *f, uint32_t y);

/* For tests: other inner loops than the fastest that this machine runs. */
struct fancy_class;
void fancy_use(struct fancy *f, const struct fancy_class *class);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding half of a codec: it keeps libjpeg's encoder between images. */
#ifndef LOADER_IMAGE_CODEC_ENCODE_H
#define LOADER_IMAGE_CODEC_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/util/image.h"

struct codec_encoder;
struct codec_error;

/* The error must outlive the encoder. */
int codec_encoder_open(struct codec_error *error, struct codec_encoder **out);
void codec_encoder_close(struct codec_encoder *encoder);

/* codec_encode() */
int codec_encoder_run(struct codec_encoder *encoder, const struct image *image,
		      unsigned quality, uint8_t **bytes, size_t *size);

#endif

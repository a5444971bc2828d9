/* SPDX-License-Identifier: Apache-2.0 */
/* Growing memory as libjpeg's destination of data. */
#ifndef LOADER_IMAGE_CODEC_TARGET_H
#define LOADER_IMAGE_CODEC_TARGET_H

#include <stddef.h>
#include <stdint.h>

struct codec_target;
struct jpeg_destination_mgr;

int codec_target_open(struct codec_target **out);
void codec_target_close(struct codec_target *target);

/* For an encoder's `dest`. */
struct jpeg_destination_mgr *codec_target_manager(struct codec_target *target);

/*
 * The bytes since the encoder was started, malloc'ed and the caller's. *size is
 * right only if the encoder finished. NULL: no bytes.
 */
uint8_t *codec_target_take(struct codec_target *target, size_t *size);

#endif

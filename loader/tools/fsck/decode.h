/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes whole JPEGs, and drops the pixels. One thread uses a decoder. */
#ifndef LOADER_TOOLS_FSCK_DECODE_H
#define LOADER_TOOLS_FSCK_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decoder;

/* -ENOMEM. */
int decoder_open(struct decoder **out);
void decoder_close(struct decoder *d);

/*
 * Decodes all pixels of a JPEG of width x height. -EBADMSG: it is damaged, or
 * has other sides. -EUCLEAN: only the index in it is wrong. -EINVAL: it can be
 * decoded, but it is odd: it has an index of another scan, or our decoder,
 * which takes all that usual encoders write, refuses its data. -ENOMEM. *why
 * is the reason, valid until the next call.
 */
int decoder_check(struct decoder *d, const uint8_t *bytes, size_t size,
		  uint32_t width, uint32_t height, const char **why);

#endif

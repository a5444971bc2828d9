/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a JPEG's header before libjpeg allocates memory for pixels. */
#ifndef LOADER_CODEC_HEADER_H
#define LOADER_CODEC_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct codec_error;
struct jpeg_decompress_struct;

/*
 * Most memory for coefficients, all of which libjpeg holds for files with
 * several scans.
 */
enum { CODEC_MEMORY_MAX = 1 << 30 };

/* -EBADMSG: an unsupported kind of JPEG, or a decompression bomb. */
int codec_header_check(struct jpeg_decompress_struct *jpeg,
		       const uint8_t *bytes, size_t size,
		       struct codec_error *error);

#endif

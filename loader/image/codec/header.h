/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a JPEG's header before libjpeg allocates memory for pixels. */
#ifndef LOADER_IMAGE_CODEC_HEADER_H
#define LOADER_IMAGE_CODEC_HEADER_H

#include <stdbool.h>
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

/*
 * Whether an end of the bytes is premature by itself. Huffman codes of a single
 * scan need no such check: libjpeg warns where they are missing. It reads
 * several scans to their end, and takes missing arithmetic codes for zeros.
 */
bool codec_header_needs_end(struct jpeg_decompress_struct *jpeg);

#endif

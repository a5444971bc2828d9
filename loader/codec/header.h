/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses a JPEG by its header, before libjpeg takes memory for pixels. */
#ifndef LOADER_CODEC_HEADER_H
#define LOADER_CODEC_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct codec_error;
struct jpeg_decompress_struct;

/* Coefficients of files with several scans are kept all at once. */
enum { CODEC_MEMORY_MAX = 1 << 30 };

/* -EBADMSG: no kind of JPEG that we decode, or a bomb. */
int codec_header_check(struct jpeg_decompress_struct *jpeg,
		       const uint8_t *bytes, size_t size,
		       struct codec_error *error);

#endif

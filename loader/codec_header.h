/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused as soon as the header is read, and what it says. */
#ifndef LOADER_CODEC_HEADER_H
#define LOADER_CODEC_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/codec.h"

struct codec_error;
struct jpeg_decompress_struct;

/* Coefficients of files with several scans are kept all at once. */
enum { CODEC_MEMORY_MAX = 1 << 30 };

/* -EBADMSG: no kind of JPEG that we decode, or a bomb. */
int codec_header_check(struct jpeg_decompress_struct *jpeg,
		       const uint8_t *bytes, size_t size,
		       struct codec_error *error);

enum codec_colour
codec_header_colour(const struct jpeg_decompress_struct *jpeg);

#endif

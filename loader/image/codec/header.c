/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/header.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#include "loader/image/codec/error.h"
#include "loader/image/codec/marker.h"

enum { BLOCK_BYTES = DCTSIZE2 * sizeof(JCOEF) };

/*
 * For a file with several scans, libjpeg allocates and clears 128 bytes per
 * block of pixels. Its first scans need a bit or more for each block, so a
 * complete file has at least an eighth as many bytes. Arithmetic coding can do
 * better, and is only limited; also in a single scan, whose blocks are decoded
 * for seconds without a byte of input.
 */
static int check_memory(struct jpeg_decompress_struct *jpeg, size_t size,
			struct codec_error *error)
{
	uint64_t blocks = 0;

	if (!jpeg_has_multiple_scans(jpeg) && !jpeg->arith_code)
		return 0;
	for (int i = 0; i < jpeg->num_components; i++)
		blocks += (uint64_t)jpeg->comp_info[i].width_in_blocks *
			  jpeg->comp_info[i].height_in_blocks;
	if (blocks > CODEC_MEMORY_MAX / BLOCK_BYTES ||
	    (!jpeg->arith_code && blocks / 8 > size))
		return codec_error_set(
			error, -EBADMSG,
			"%u x %u pixels in several scans or arithmetic codes are too many for %zu bytes",
			jpeg->image_width, jpeg->image_height, size);
	return 0;
}

static int check_kind(const struct jpeg_decompress_struct *jpeg, unsigned frame,
		      struct codec_error *error)
{

	/* Newer versions of libjpeg-turbo read it, but cannot crop it. */
	if (frame == MARKER_SOF0 + 3 || frame == MARKER_SOF0 + 11)
		return codec_error_set(error, -EBADMSG, "a lossless JPEG");
	if (jpeg->data_precision != 8)
		return codec_error_set(error, -EBADMSG,
				       "%d bits per sample instead of 8",
				       jpeg->data_precision);
	if (jpeg->jpeg_color_space == JCS_UNKNOWN)
		return codec_error_set(error, -EBADMSG,
				       "%d components of no known colors",
				       jpeg->num_components);
	return 0;
}

int codec_header_check(struct jpeg_decompress_struct *jpeg,
		       const uint8_t *bytes, size_t size,
		       struct codec_error *error)
{
	int r = check_kind(jpeg, codec_marker_frame(bytes, size), error);

	return r ? r : check_memory(jpeg, size, error);
}

bool codec_header_needs_end(struct jpeg_decompress_struct *jpeg)
{
	return jpeg->arith_code || jpeg_has_multiple_scans(jpeg);
}

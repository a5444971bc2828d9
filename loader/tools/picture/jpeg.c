/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes JPEG. Our decoder takes baseline files, and the codec all others;
 * both give the same pixels.
 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/exif.h"
#include "loader/image/codec/marker.h"
#include "loader/tools/picture/format.h"

/* --- pixels -------------------------------------------------------------- */

static unsigned read_orientation(const uint8_t *bytes, size_t size)
{
	struct marker_walk walk = { .bytes = bytes, .size = size };
	struct marker_segment s;
	unsigned o = 1;

	while (o == 1 && codec_marker_next(&walk, &s))
		if (s.marker == MARKER_APP1)
			o = exif_orientation(s.bytes, s.size);
	return o;
}

/* -ENOTSUP: the codec has to decode it. */
static int decode_baseline(struct picture_decoder *d, const uint8_t *bytes,
			   size_t size, struct picture_found *out)
{
	struct baseline_plane whole[BASELINE_COMPONENTS];
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct baseline_image jpeg;
	struct image *image = &out->image;
	struct rect all;
	int r = baseline_header(d->baseline, bytes, size, &jpeg);

	if (r || !upsample_can(&jpeg))
		return -ENOTSUP;
	r = picture_reserve(d, jpeg.width, jpeg.height, image);
	r = r ? r : baseline_decode_whole(d->baseline, &jpeg, NULL, whole);
	if (r)
		return r;
	all = (struct rect){ 0, 0, jpeg.width, jpeg.height };
	baseline_part(&jpeg, whole, &all, 1, planes);
	r = upsample_start(d->upsample, &jpeg, planes, &all);
	for (uint32_t y = 0; !r && y < image->height; y++)
		memcpy(image->pixels + y * image->stride,
		       upsample_row(d->upsample, y), image->stride);
	out->orientation = read_orientation(bytes, size);
	out->plain = codec_marker_frame(bytes, size) == MARKER_SOF0;
	return r;
}

static int decode_any(struct picture_decoder *d, const uint8_t *bytes,
		      size_t size, struct picture_found *out)
{
	struct codec_info info = { 0 };
	int r = codec_probe(d->codec, bytes, size, &info);

	if (r)
		return picture_refuse(d, r, "%s", codec_message(d->codec));
	r = picture_reserve(d, info.width, info.height, &out->image);
	if (r)
		return r;
	r = codec_decode(d->codec, bytes, size,
			 &(struct rect){ 0, 0, info.width, info.height },
			 &out->image);
	if (r)
		return picture_refuse(d, r, "%s", codec_message(d->codec));
	out->orientation = info.orientation;
	out->plain = info.baseline && info.color != CODEC_CMYK;
	return 0;
}

static int decode_jpeg(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, struct picture_found *out)
{
	int r = decode_baseline(d, bytes, size, out);

	/* The codec decides what is damaged. It may also succeed with less
	   memory. */
	return r == -ENOTSUP || r == -ENOMEM ? decode_any(d, bytes, size, out)
					     : r;
}

/* --- structure ----------------------------------------------------------- */

/* Returns how many restart markers the scan has. */
static uint64_t count_restarts(const struct baseline_image *jpeg)
{
	uint64_t mcus = (uint64_t)jpeg->mcus_across * jpeg->mcus_down;

	return jpeg->restart_interval ? (mcus - 1) / jpeg->restart_interval : 0;
}

/* The shortest scan has a bit for a block's first coefficient, and a bit that
   ends the block. */
static uint64_t least_scan_size(const struct baseline_image *jpeg)
{
	uint64_t blocks = 0;

	for (unsigned i = 0; i < jpeg->components; i++)
		blocks += (uint64_t)jpeg->component[i].blocks_across *
			  jpeg->component[i].blocks_down;
	return blocks * jpeg->mcus_across * jpeg->mcus_down / 4;
}

/* Returns whether only restart markers, in their order, lie between the scan's
   first byte and its end marker. */
static bool has_whole_scan(const struct baseline_image *jpeg)
{
	enum { RESTART_FIRST = 0xd0, RESTART_KINDS = 8 };
	const uint8_t *at = jpeg->scan, *end = at + jpeg->scan_size;
	uint64_t restarts = 0;

	while ((at = memchr(at, 0xff, (size_t)(end - at))) && end - at >= 2) {
		if (at[1] == MARKER_EOI)
			return restarts == count_restarts(jpeg) &&
			       (uint64_t)(at - jpeg->scan) >=
				       least_scan_size(jpeg);
		if (at[1] && at[1] != RESTART_FIRST + restarts % RESTART_KINDS)
			return false;
		restarts += at[1] != 0;
		at += 2;
	}
	return false;
}

int picture_jpeg_probe(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, uint32_t *width, uint32_t *height)
{
	struct baseline_image jpeg;

	if (baseline_header(d->baseline, bytes, size, &jpeg) ||
	    codec_marker_frame(bytes, size) != MARKER_SOF0 ||
	    read_orientation(bytes, size) != 1 || !has_whole_scan(&jpeg))
		return -ENOTSUP;
	*width = jpeg.width;
	*height = jpeg.height;
	return 0;
}

static bool is_jpeg(const uint8_t *bytes, size_t size)
{
	return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

const struct picture_format picture_jpeg = {
	.name = "JPEG",
	.extensions = ".jpg .jpeg .jpe",
	.matches = is_jpeg,
	.decode = decode_jpeg,
};

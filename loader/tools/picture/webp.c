/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes WebP. No other file uses libwebp, which is optional. */
#include <errno.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/picture/format.h"

#ifdef HAVE_WEBP

#	include <webp/decode.h>

/* The file is chunks of {4 bytes name, u32 size, data padded to 2 bytes}. */
static unsigned read_orientation(const uint8_t *bytes, size_t size)
{
	enum { FIRST = 12, HEAD = 8 };
	uint64_t at = FIRST, n;

	for (; range_ok(at, HEAD, size); at += HEAD + align_up(n, 2)) {
		n = load32(bytes + at + 4);
		if (!range_ok(at + HEAD, n, size))
			return 0;
		if (memcmp(bytes + at, "EXIF", 4) == 0)
			return picture_exif_orientation(bytes + at + HEAD, n);
	}
	return 0;
}

int picture_decode_webp(struct picture_decoder *d, const uint8_t *bytes,
			size_t size, struct picture_found *out)
{
	WebPBitstreamFeatures f;
	int r;

	if (WebPGetFeatures(bytes, size, &f) != VP8_STATUS_OK)
		return picture_refuse(d, -EBADMSG, "WebP: damaged header");
	if (f.has_animation)
		return picture_refuse(d, -ENOTSUP, "WebP: an animation");
	r = picture_reserve(d, (uint32_t)f.width, (uint32_t)f.height,
			    &out->image);
	if (r)
		return r;
	if (!WebPDecodeRGBInto(bytes, size, out->image.pixels,
			       out->image.stride * out->image.height,
			       (int)out->image.stride))
		return picture_refuse(d, -EBADMSG,
				      "WebP: damaged or incomplete");
	out->orientation = read_orientation(bytes, size);
	return 0;
}

#else

int picture_decode_webp(struct picture_decoder *d, const uint8_t *bytes,
			size_t size, struct picture_found *out)
{
	(void)bytes;
	(void)size;
	(void)out;
	return picture_refuse(d, -ENOTSUP, "built without support for WebP");
}

#endif

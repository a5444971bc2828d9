/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes WebP. No other file uses libwebp, which is optional. */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"

#ifdef HAVE_WEBP

#	include <webp/decode.h>

/* The first chunk of this name. The file is chunks of {4 bytes name, u32 size,
   data padded to 2 bytes}. */
static const uint8_t *find_chunk(const uint8_t *bytes, size_t size,
				 const char *name, size_t *out)
{
	enum { FIRST = 12, HEAD = 8 };
	uint64_t at = FIRST, n;

	for (; range_ok(at, HEAD, size); at += HEAD + align_up(n, 2)) {
		n = load32(bytes + at + 4);
		if (!range_ok(at + HEAD, n, size))
			return NULL;
		if (memcmp(bytes + at, name, 4) == 0) {
			*out = n;
			return bytes + at + HEAD;
		}
	}
	return NULL;
}

static unsigned read_orientation(const uint8_t *bytes, size_t size)
{
	size_t n;
	const uint8_t *exif = find_chunk(bytes, size, "EXIF", &n);

	return exif ? picture_exif_orientation(exif, n) : 0;
}

struct frame {
	const uint8_t *bytes; /* its chunks */
	size_t size;
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

static uint32_t load24(const uint8_t *p)
{
	return load16(p) | (uint32_t)p[2] << 16;
}

/* Finds the first frame of an animation. Its chunk begins with 16 bytes: x and
   y in units of 2 pixels, width and height less 1, duration, flags. */
static bool find_frame(const uint8_t *bytes, size_t size, struct frame *out)
{
	enum { HEAD = 16 };
	size_t n;
	const uint8_t *p = find_chunk(bytes, size, "ANMF", &n);

	if (!p || n < HEAD)
		return false;
	*out = (struct frame){
		.bytes = p + HEAD,
		.size = n - HEAD,
		.x = 2 * load24(p),
		.y = 2 * load24(p + 3),
		.width = load24(p + 6) + 1,
		.height = load24(p + 9) + 1,
	};
	return true;
}

/* Decodes the frame onto black. */
static bool decode_frame(const struct frame *f, const struct image *image)
{
	size_t at = f->y * image->stride + 3 * (size_t)f->x;
	size_t all = image->stride * image->height;
	int width, height;

	if (!range_ok(f->x, f->width, image->width) ||
	    !range_ok(f->y, f->height, image->height) ||
	    !WebPGetInfo(f->bytes, f->size, &width, &height) ||
	    (uint32_t)width != f->width || (uint32_t)height != f->height)
		return false;
	if (f->width < image->width || f->height < image->height)
		memset(image->pixels, 0, all);
	return WebPDecodeRGBInto(f->bytes, f->size, image->pixels + at,
				 all - at, (int)image->stride);
}

static int decode_webp(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, struct picture_found *out)
{
	struct frame frame = { bytes, size, 0, 0, 0, 0 };
	WebPBitstreamFeatures f;
	int r;

	if (WebPGetFeatures(bytes, size, &f) != VP8_STATUS_OK)
		return picture_refuse(d, -EBADMSG, "WebP: damaged header");
	frame.width = (uint32_t)f.width;
	frame.height = (uint32_t)f.height;
	if (f.has_animation && !find_frame(bytes, size, &frame))
		return picture_refuse(d, -EBADMSG,
				      "WebP: an animation without frames");
	r = picture_reserve(d, (uint32_t)f.width, (uint32_t)f.height,
			    &out->image);
	if (r)
		return r;
	if (!decode_frame(&frame, &out->image))
		return picture_refuse(d, -EBADMSG,
				      "WebP: damaged or incomplete");
	out->orientation = read_orientation(bytes, size);
	return 0;
}

#	define DECODE decode_webp
#else
#	define DECODE NULL
#endif

static bool is_webp(const uint8_t *bytes, size_t size)
{
	return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 &&
	       memcmp(bytes + 8, "WEBP", 4) == 0;
}

const struct picture_format picture_webp = {
	.name = "WebP",
	.extensions = ".webp",
	.matches = is_webp,
	.decode = DECODE,
	.package = "libwebp-dev",
};

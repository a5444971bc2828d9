/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the first frame of JPEG XL files. No other file uses libjxl, which is
   optional, and loaded at the first such image. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"

#ifdef HAVE_JXL

#	include <jxl/decode.h>

#	define FUNCTIONS(row)                                                 \
		row(CloseInput) row(Create) row(Destroy) row(GetBasicInfo)     \
			row(GetExtraChannelInfo) row(ImageOutBufferSize)       \
				row(ProcessInput) row(SetImageOutBuffer)       \
					row(SetInput) row(SubscribeEvents)

/* The functions of libjxl, whose names begin with JxlDecoder. */
struct api {
#	define MEMBER(name) __typeof__(JxlDecoder##name) *name;
	FUNCTIONS(MEMBER)
};

#	define SYMBOL(name)                                                   \
		{ "JxlDecoder" #name, offsetof(struct api, name), true },
static const struct library_symbol symbols[] = { FUNCTIONS(SYMBOL) };

struct jxl {
	struct api api;
	JxlDecoder *decoder;
};

/* Black is an extra channel. Its colors would need a conversion by profiles. */
static bool has_black(const struct jxl *jxl, uint32_t channels)
{
	JxlExtraChannelInfo info;

	for (uint32_t i = 0; i < channels; i++)
		if (jxl->api.GetExtraChannelInfo(jxl->decoder, i, &info) ==
			    JXL_DEC_SUCCESS &&
		    info.type == JXL_CHANNEL_BLACK)
			return true;
	return false;
}

/* libjxl turns the image upright, and swaps these sides for that. */
static int reserve(struct picture_decoder *d, const struct jxl *jxl,
		   JxlBasicInfo *info, struct image *out)
{
	if (jxl->api.GetBasicInfo(jxl->decoder, info))
		return picture_refuse(d, -EBADMSG, "JPEG XL: damaged header");
	if (has_black(jxl, info->num_extra_channels))
		return picture_refuse(d, -ENOTSUP, "JPEG XL: CMYK colors");
	return picture_reserve(d, info->xsize, info->ysize, out);
}

/* More than 8 bits arrive as 16, of which the upper 8 stay. */
struct target {
	JxlPixelFormat format;
	uint16_t *wide;
};

static int set_target(struct picture_decoder *d, const struct jxl *jxl,
		      const JxlBasicInfo *info, const struct image *image,
		      struct target *t)
{
	size_t n = image->stride * image->height, size = 0;
	bool is_wide = info->bits_per_sample > 8;
	void *out = image->pixels;

	t->format = (JxlPixelFormat){
		.num_channels = 3,
		.data_type = is_wide ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
		.endianness = JXL_NATIVE_ENDIAN,
	};
	if (is_wide) {
		free(t->wide);
		t->wide = malloc(2 * n);
		if (!t->wide)
			return picture_refuse(d, -EFBIG,
					      "no memory for %zu MiB of pixels",
					      2 * n >> 20);
		memset(t->wide, 0, 2 * n);
		out = t->wide;
		n *= 2;
	}
	if (jxl->api.ImageOutBufferSize(jxl->decoder, &t->format, &size) ||
	    size != n ||
	    jxl->api.SetImageOutBuffer(jxl->decoder, &t->format, out, n))
		return picture_refuse(d, -EBADMSG, "JPEG XL: unexpected size");
	return 0;
}

static void narrow(const struct target *t, const struct image *image)
{
	for (size_t i = 0; t->wide && i < image->stride * image->height; i++)
		image->pixels[i] = (uint8_t)(t->wide[i] >> 8);
}

/* Runs the decoder until the first frame is complete. */
static int run(struct picture_decoder *d, const struct jxl *jxl,
	       struct target *t, struct image *out)
{
	JxlBasicInfo info = { 0 };
	int r = 0;

	while (!r) {
		JxlDecoderStatus status = jxl->api.ProcessInput(jxl->decoder);

		if (status == JXL_DEC_FULL_IMAGE)
			return 0;
		if (status == JXL_DEC_BASIC_INFO)
			r = reserve(d, jxl, &info, out);
		else if (status == JXL_DEC_NEED_IMAGE_OUT_BUFFER)
			r = set_target(d, jxl, &info, out, t);
		else
			r = picture_refuse(d, -EBADMSG,
					   "JPEG XL: damaged or incomplete");
	}
	return r;
}

static bool start(const struct jxl *jxl, const uint8_t *bytes, size_t size)
{
	int events = JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE;

	if (jxl->api.SubscribeEvents(jxl->decoder, events) ||
	    jxl->api.SetInput(jxl->decoder, bytes, size))
		return false;
	jxl->api.CloseInput(jxl->decoder);
	return true;
}

static int decode_jxl(struct picture_decoder *d, const uint8_t *bytes,
		      size_t size, struct picture_found *out)
{
	struct target t = { .wide = NULL };
	struct jxl jxl;
	int r = picture_load(d, JXL_LIBRARY, symbols, ARRAY_LEN(symbols),
			     &jxl.api);

	if (r)
		return r;
	jxl.decoder = jxl.api.Create(NULL);
	if (!jxl.decoder || !start(&jxl, bytes, size)) {
		jxl.api.Destroy(jxl.decoder);
		return picture_refuse(d, -ENOMEM, "out of memory");
	}
	r = run(d, &jxl, &t, &out->image);
	if (!r)
		narrow(&t, &out->image);
	free(t.wide);
	jxl.api.Destroy(jxl.decoder);
	return r;
}

#	define DECODE decode_jxl
#else
#	define DECODE NULL
#endif

/* A bare codestream, or one in boxes. */
static bool is_jxl(const uint8_t *bytes, size_t size)
{
	static const uint8_t boxes[] = { 0,   0,   0,	 12,   'J',  'X',
					 'L', ' ', '\r', '\n', 0x87, '\n' };

	return (size >= 2 && bytes[0] == 0xff && bytes[1] == 0x0a) ||
	       (size >= sizeof(boxes) &&
		memcmp(bytes, boxes, sizeof(boxes)) == 0);
}

const struct picture_format picture_jxl = {
	.name = "JPEG XL",
	.extensions = ".jxl",
	.matches = is_jxl,
	.decode = DECODE,
	.package = "libjxl-dev",
};

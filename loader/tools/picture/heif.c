/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the primary image of AVIF and HEIC files. No other file uses libheif,
   which is optional, and loaded at the first such image. */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"

#ifdef HAVE_HEIF

#	include <libheif/heif.h>

#	define FUNCTIONS(row)                                                    \
		row(context_alloc) row(context_free) row(                         \
			context_get_primary_image_handle)                         \
			row(context_read_from_memory_without_copy) row(           \
				decode_image) row(decoding_options_alloc)         \
				row(decoding_options_free) row(                   \
					image_get_height)                         \
					row(image_get_plane_readonly) row(        \
						image_get_width)                  \
						row(image_handle_get_height) row( \
							image_handle_get_width)   \
							row(image_handle_release) \
								row(image_release)

/* The functions of libheif. */
struct api {
#	define MEMBER(name) __typeof__(heif_##name) *name;
	FUNCTIONS(MEMBER)
#	if LIBHEIF_HAVE_VERSION(1, 13, 0)
	MEMBER(context_set_max_decoding_threads)
#	endif
};

#	define SYMBOL(name)                                                   \
		{ "heif_" #name, offsetof(struct api, name), true },
static const struct library_symbol symbols[] = {
	FUNCTIONS(SYMBOL)
#	if LIBHEIF_HAVE_VERSION(1, 13, 0)
		SYMBOL(context_set_max_decoding_threads)
#	endif
};

/* The state of one file. */
struct heif {
	struct api api;
	struct heif_context *context;
	struct heif_image_handle *handle;
	struct heif_image *image;
};

static int refuse(struct picture_decoder *d, struct heif_error e)
{
	int r = e.code == heif_error_Unsupported_filetype ||
				e.code == heif_error_Unsupported_feature ||
				e.code == heif_error_Plugin_loading_error
			? -ENOTSUP
			: -EBADMSG;

	return picture_refuse(d, r, "HEIF: %.100s", e.message);
}

/* libheif turns and crops the image as the file asks. The orientation in EXIF
   data repeats that, and does not count. */
static struct heif_error decode_image(struct heif *h)
{
	struct heif_decoding_options *o = h->api.decoding_options_alloc();
	struct heif_error e = { heif_error_Memory_allocation_error,
				heif_suberror_Unspecified, "out of memory" };

	if (!o)
		return e;
	o->convert_hdr_to_8bit = 1;
	e = h->api.decode_image(h->handle, &h->image, heif_colorspace_RGB,
				heif_chroma_interleaved_RGB, o);
	h->api.decoding_options_free(o);
	return e;
}

static int copy_pixels(struct picture_decoder *d, const struct heif *h,
		       struct image *out)
{
	enum heif_channel all = heif_channel_interleaved;
	int width = h->api.image_get_width(h->image, all);
	int height = h->api.image_get_height(h->image, all), stride = 0;
	const uint8_t *in =
		h->api.image_get_plane_readonly(h->image, all, &stride);
	int r;

	if (!in || width <= 0 || height <= 0)
		return picture_refuse(d, -EBADMSG, "HEIF: no pixels");
	r = picture_reserve(d, (uint32_t)width, (uint32_t)height, out);
	for (uint32_t y = 0; !r && y < out->height; y++)
		memcpy(out->pixels + y * out->stride, in + y * (size_t)stride,
		       out->stride);
	return r;
}

/* The image's size is checked before libheif takes memory for it. */
static int decode(struct picture_decoder *d, struct heif *h,
		  const uint8_t *bytes, size_t size, struct image *out)
{
	struct heif_error e;
	int r;

	h->context = h->api.context_alloc();
	if (!h->context)
		return picture_refuse(d, -ENOMEM, "out of memory");
#	if LIBHEIF_HAVE_VERSION(1, 13, 0)
	/* Each thread of the program decodes an image of its own. */
	h->api.context_set_max_decoding_threads(h->context, 0);
#	endif
	e = h->api.context_read_from_memory_without_copy(h->context, bytes,
							 size, NULL);
	if (e.code)
		return refuse(d, e);
	e = h->api.context_get_primary_image_handle(h->context, &h->handle);
	if (e.code)
		return refuse(d, e);
	r = picture_reserve(
		d, (uint32_t)h->api.image_handle_get_width(h->handle),
		(uint32_t)h->api.image_handle_get_height(h->handle), out);
	if (r)
		return r;
	e = decode_image(h);
	return e.code ? refuse(d, e) : copy_pixels(d, h, out);
}

static int decode_heif(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, struct picture_found *out)
{
	struct heif h = { .context = NULL };
	int r = picture_load(d, HEIF_LIBRARY, symbols, ARRAY_LEN(symbols),
			     &h.api);

	if (r)
		return r;
	r = decode(d, &h, bytes, size, &out->image);
	if (h.image)
		h.api.image_release(h.image);
	if (h.handle)
		h.api.image_handle_release(h.handle);
	if (h.context)
		h.api.context_free(h.context);
	return r;
}

#	define DECODE decode_heif
#else
#	define DECODE NULL
#endif

/*
 * Returns whether the first box of the file has one of the brands. It is
 * {big-endian u32 size, "ftyp", brand, version, more brands}.
 */
static bool has_brand(const uint8_t *bytes, size_t size,
		      const char *const *brands)
{
	enum { BRAND_AT = 8, VERSION_AT = 12, HEAD = 16 };
	uint64_t end;

	if (size < HEAD || memcmp(bytes + 4, "ftyp", 4) != 0)
		return false;
	end = min_u64(size, (uint64_t)bytes[0] << 24 | bytes[1] << 16 |
				    bytes[2] << 8 | bytes[3]);
	for (; *brands; brands++)
		for (uint64_t at = BRAND_AT; at + 4 <= end; at += 4)
			if (at != VERSION_AT &&
			    memcmp(bytes + at, *brands, 4) == 0)
				return true;
	return false;
}

static bool is_avif(const uint8_t *bytes, size_t size)
{
	static const char *const brands[] = { "avif", "avis", NULL };

	return has_brand(bytes, size, brands);
}

static bool is_heic(const uint8_t *bytes, size_t size)
{
	static const char *const brands[] = { "heic", "heix", "heim",
					      "heis", "hevc", "hevx",
					      "mif1", "msf1", NULL };

	return has_brand(bytes, size, brands);
}

const struct picture_format picture_avif = {
	.name = "AVIF",
	.extensions = ".avif",
	.matches = is_avif,
	.decode = DECODE,
	.package = "libheif-dev",
};

const struct picture_format picture_heic = {
	.name = "HEIC",
	.extensions = ".heic .heif",
	.matches = is_heic,
	.decode = DECODE,
	.package = "libheif-dev",
};

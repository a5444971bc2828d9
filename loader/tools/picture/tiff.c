/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the first page of a TIFF. No other file uses libtiff, which is
   optional. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/picture/format.h"

#ifdef HAVE_TIFF
#	include <tiffio.h>
#	if TIFFLIB_VERSION < 20221213 /* 4.5 added TIFFOpenOptions */
#		undef HAVE_TIFF
#	endif
#endif

#ifdef HAVE_TIFF

enum {
	/* A pixel's samples, with alpha and others that are not used. */
	SAMPLES_MAX = 32,
	COLORS_MAX = 256,
	CMYK_SAMPLES = 4,
	/* Bytes of a strip or tile. */
	UNIT_MAX = 1 << 30,
};

/* How samples become pixels. */
enum kind {
	KIND_GRAY,
	KIND_INVERTED, /* gray, 0 is white */
	KIND_PALETTE,
	KIND_RGB,
	KIND_CMYK,
};

/* Samples that each kind uses. */
static const unsigned used_samples[] = {
	[KIND_GRAY] = 1, [KIND_INVERTED] = 1,	     [KIND_PALETTE] = 1,
	[KIND_RGB] = 3,	 [KIND_CMYK] = CMYK_SAMPLES,
};

/* The file in memory, as libtiff reads it. */
struct input {
	struct picture_decoder *decoder;
	const uint8_t *bytes;
	uint64_t size;
	uint64_t at;
	bool failed; /* the decoder has a message */
};

struct page {
	TIFF *tiff;
	struct image *image;
	enum kind kind;
	uint16_t bits;	  /* per sample */
	uint16_t samples; /* per pixel */
	bool planar;	  /* samples lie in planes of their own */
	bool has_alpha;	  /* the colors are multiplied by the next sample */
	uint16_t nothing; /* a sample of what the file leaves out, as stored */
	uint8_t palette[COLORS_MAX][3];
	/* A strip or tile: */
	uint32_t width;
	uint32_t height;
	bool tiled;
	uint8_t *unit;
	uint8_t *row; /* samples of 8 bits */
	size_t unit_size;
	size_t unit_stride;
};

/* --- libtiff's input and errors ------------------------------------------ */

static tmsize_t on_read(thandle_t arg, void *out, tmsize_t size)
{
	struct input *in = arg;
	uint64_t n = in->at < in->size ? in->size - in->at : 0;

	n = min_u64(n, (uint64_t)size);
	memcpy(out, in->bytes + in->at, n);
	in->at += n;
	return (tmsize_t)n;
}

static tmsize_t on_write(thandle_t arg, void *bytes, tmsize_t size)
{
	(void)arg;
	(void)bytes;
	(void)size;
	return -1;
}

static toff_t on_seek(thandle_t arg, toff_t offset, int whence)
{
	struct input *in = arg;

	in->at = whence == SEEK_CUR   ? in->at + offset
		 : whence == SEEK_END ? in->size + offset
				      : offset;
	return in->at;
}

static int on_close(thandle_t arg)
{
	(void)arg;
	return 0;
}

static toff_t on_size(thandle_t arg)
{
	return ((struct input *)arg)->size;
}

/* Keeps the first message. */
static int on_error(TIFF *tiff, void *arg, const char *module,
		    const char *format, va_list args)
{
	struct input *in = arg;
	char text[PICTURE_MESSAGE_SIZE - 16];

	(void)tiff;
	(void)module;
	if (!in->failed) {
		vsnprintf(text, sizeof(text), format, args);
		picture_refuse(in->decoder, -EBADMSG, "TIFF: %s", text);
	}
	in->failed = true;
	return 1;
}

static int on_warning(TIFF *tiff, void *arg, const char *module,
		      const char *format, va_list args)
{
	(void)tiff;
	(void)arg;
	(void)module;
	(void)format;
	(void)args;
	return 1;
}

/* Opens the first directory without mapping the file, and without loading
   tables of strips before they are needed. */
static TIFF *open_tiff(struct input *in)
{
	TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
	TIFF *tiff = NULL;

	if (!options)
		return NULL;
	TIFFOpenOptionsSetMaxSingleMemAlloc(options, UNIT_MAX);
	TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, in);
	TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, in);
	tiff = TIFFClientOpenExt("TIFF", "rmO", in, on_read, on_write, on_seek,
				 on_close, on_size, NULL, NULL, options);
	TIFFOpenOptionsFree(options);
	return tiff;
}

static int refuse(struct input *in)
{
	return in->failed
		       ? -EBADMSG
		       : picture_refuse(in->decoder, -EBADMSG, "TIFF: damaged");
}

/* --- samples ------------------------------------------------------------- */

/* Spreads `bits` bits over 0 to 255, unless they are indices. */
static void unpack_bits(const struct page *p, const uint8_t *in, size_t n,
			uint8_t *out)
{
	unsigned last = (1u << p->bits) - 1;
	unsigned factor = p->kind == KIND_PALETTE ? 1 : 255 / last;

	for (size_t i = 0; i < n; i++) {
		size_t at = i * p->bits;
		unsigned shift = 8 - p->bits - (unsigned)(at % 8);

		out[i] = (uint8_t)((in[at / 8] >> shift & last) * factor);
	}
}

/* libtiff returns 16 bits in this machine's order. */
static void unpack_samples(const struct page *p, const uint8_t *in, size_t n,
			   uint8_t *out)
{
	if (p->bits == 16)
		for (size_t i = 0; i < n; i++)
			out[i] = (uint8_t)(load16(in + 2 * i) >> 8);
	else if (p->bits == 8)
		memcpy(out, in, n);
	else
		unpack_bits(p, in, n, out);
}

/* value * factor / 255, rounded. */
static uint8_t scale(unsigned value, unsigned factor)
{
	unsigned t = value * factor + 128;

	return (uint8_t)((t + (t >> 8)) >> 8);
}

/* A pixel of no alpha has no color: it stays as it is, as in Pillow. */
static void divide(uint8_t *pixel, unsigned alpha)
{
	for (int c = 0; alpha && c < 3; c++)
		pixel[c] = (uint8_t)min_u64(pixel[c] * 255u / alpha, 255);
}

/* Samples of CMYK arrive in order: black, the last, makes a color of the three
   that the pixel holds until then. Alpha follows the colors. */
static void put_sample(const struct page *p, unsigned channel, uint8_t v,
		       uint8_t *pixel)
{
	if (channel == used_samples[p->kind]) {
		divide(pixel, v);
		return;
	}
	switch (p->kind) {
	case KIND_GRAY:
		memset(pixel, v, 3);
		break;
	case KIND_INVERTED:
		memset(pixel, 255 - v, 3);
		break;
	case KIND_PALETTE:
		memcpy(pixel, p->palette[v], 3);
		break;
	case KIND_RGB:
		pixel[channel] = v;
		break;
	case KIND_CMYK:
		if (channel < 3)
			pixel[channel] = v;
		for (int c = 0; channel == 3 && c < 3; c++)
			pixel[c] =
				(uint8_t)(255 - v - scale(pixel[c], 255u - v));
		break;
	}
}

/* The samples of a pixel that count. */
static unsigned num_read(const struct page *p)
{
	return used_samples[p->kind] + p->has_alpha;
}

/* Puts the first `width` pixels of a unit's row. All samples of a plane belong
   to one channel. */
static void put_row(const struct page *p, const uint8_t *in, unsigned plane,
		    uint32_t width, uint8_t *pixel)
{
	size_t step = p->planar ? 1 : p->samples;
	unsigned n = p->planar ? 1 : num_read(p);
	const uint8_t *row = p->row;

	unpack_samples(p, in, width * step, p->row);
	for (uint32_t x = 0; x < width; x++, row += step, pixel += 3)
		for (unsigned c = 0; c < n; c++)
			put_sample(p, plane + c, row[c], pixel);
}

/* --- strips and tiles ---------------------------------------------------- */

/*
 * Returns whether the file leaves out a strip or tile, as GDAL's SPARSE_OK does:
 * its offset and its size are 0. libtiff reads the beginning of the file then.
 */
static bool is_absent(TIFF *tiff, uint32_t unit)
{
	return !TIFFGetStrileOffset(tiff, unit) &&
	       !TIFFGetStrileByteCount(tiff, unit);
}

static void fill_unit(struct page *p, size_t bytes)
{
	if (p->bits == 16)
		for (size_t i = 0; i + 1 < bytes; i += 2)
			store16(p->unit + i, p->nothing);
	else
		memset(p->unit, p->bits == 8 ? p->nothing : 0, bytes);
}

/* Reads the unit whose upper left pixel is (x, y). */
static bool read_unit(struct page *p, uint32_t x, uint32_t y, unsigned plane,
		      size_t bytes)
{
	uint16_t s = (uint16_t)plane;
	uint32_t unit = p->tiled ? TIFFComputeTile(p->tiff, x, y, 0, s)
				 : TIFFComputeStrip(p->tiff, y, s);
	tmsize_t n;

	if (is_absent(p->tiff, unit)) {
		fill_unit(p, bytes);
		return true;
	}
	if (p->tiled)
		n = TIFFReadEncodedTile(p->tiff, unit, p->unit,
					(tmsize_t)p->unit_size);
	else
		n = TIFFReadEncodedStrip(p->tiff, unit, p->unit,
					 (tmsize_t)bytes);
	return n >= (tmsize_t)bytes;
}

static int read_plane(struct page *p, unsigned plane)
{
	const struct image *image = p->image;

	for (uint32_t y = 0; y < image->height; y += p->height) {
		uint32_t rows = (uint32_t)min_u64(p->height, image->height - y);

		for (uint32_t x = 0; x < image->width; x += p->width) {
			uint32_t width =
				(uint32_t)min_u64(p->width, image->width - x);

			if (!read_unit(p, x, y, plane, rows * p->unit_stride))
				return -EBADMSG;
			for (uint32_t i = 0; i < rows; i++)
				put_row(p, p->unit + i * p->unit_stride, plane,
					width,
					image->pixels +
						(y + i) * image->stride +
						3 * (size_t)x);
		}
	}
	return 0;
}

static int reserve_unit(struct input *in, struct page *p)
{
	uint32_t rows = 0;
	uint64_t stride, samples, size;

	p->tiled = TIFFIsTiled(p->tiff);
	p->width = p->image->width;
	if (p->tiled) {
		TIFFGetField(p->tiff, TIFFTAG_TILEWIDTH, &p->width);
		TIFFGetField(p->tiff, TIFFTAG_TILELENGTH, &rows);
	} else {
		TIFFGetFieldDefaulted(p->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
		rows = (uint32_t)min_u64(rows, p->image->height);
	}
	p->height = rows;
	if (!p->width || !rows)
		return picture_refuse(in->decoder, -EBADMSG,
				      "TIFF: an empty strip or tile");
	samples = (uint64_t)p->width * (p->planar ? 1 : p->samples);
	stride = (samples * p->bits + 7) / 8;
	if (!mul_ok(stride, rows, &size) || size > UNIT_MAX)
		return picture_refuse(in->decoder, -EFBIG,
				      "TIFF: a strip or tile of %u x %u pixels",
				      p->width, rows);
	p->unit_stride = stride;
	p->unit_size = size;
	/* Zeros, in case libtiff fills less than it returns. */
	p->unit = calloc(1, size);
	p->row = malloc(samples);
	return p->unit && p->row ? 0
				 : picture_refuse(in->decoder, -EFBIG,
						  "TIFF: no memory for %llu "
						  "bytes of a strip or tile",
						  (unsigned long long)size);
}

/* --- kinds --------------------------------------------------------------- */

static void read_palette(struct page *p)
{
	uint16_t *channel[3] = { NULL, NULL, NULL };

	if (!TIFFGetField(p->tiff, TIFFTAG_COLORMAP, &channel[0], &channel[1],
			  &channel[2]))
		return;
	for (size_t i = 0; i < (size_t)1 << p->bits; i++)
		for (int c = 0; c < 3; c++)
			p->palette[i][c] = (uint8_t)(channel[c][i] >> 8);
}

/* The value of GDAL_NODATA, a text, if the samples can hold it. */
static uint16_t find_nothing(const struct page *p)
{
	enum { TAG_NODATA = 42113 };
	const char *text = NULL;
	uint32_t size = 0; /* as libtiff returns it for tags it does not know */
	double v;

	if (!TIFFGetField(p->tiff, TAG_NODATA, &size, &text) || !text ||
	    !size || !memchr(text, 0, size))
		return 0;
	v = strtod(text, NULL);
	return v >= 0 && v < (1u << p->bits) ? (uint16_t)v : 0;
}

static bool find_alpha(const struct page *p)
{
	const uint16_t *extra = NULL;
	uint16_t n = 0;

	return (p->kind == KIND_GRAY || p->kind == KIND_RGB) &&
	       TIFFGetField(p->tiff, TIFFTAG_EXTRASAMPLES, &n, &extra) && n &&
	       *extra == EXTRASAMPLE_ASSOCALPHA;
}

/* Returns whether this file can read the page. */
static bool find_kind(struct page *p)
{
	uint16_t color = 0, planar = 0, format = 0, ink = 0, compression = 0;

	if (!TIFFGetField(p->tiff, TIFFTAG_PHOTOMETRIC, &color))
		return false;
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_BITSPERSAMPLE, &p->bits);
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_SAMPLESPERPIXEL, &p->samples);
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_PLANARCONFIG, &planar);
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_SAMPLEFORMAT, &format);
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_INKSET, &ink);
	TIFFGetFieldDefaulted(p->tiff, TIFFTAG_COMPRESSION, &compression);
	p->planar = planar == PLANARCONFIG_SEPARATE;
	/* libtiff's JPEG decoder converts the colors. */
	if (color == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG &&
	    !p->planar) {
		TIFFSetField(p->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
		color = PHOTOMETRIC_RGB;
	}
	if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
		return false;
	if (!(p->bits == 1 || p->bits == 2 || p->bits == 4 || p->bits == 8 ||
	      (p->bits == 16 && color != PHOTOMETRIC_PALETTE)))
		return false;
	switch (color) {
	case PHOTOMETRIC_MINISBLACK:
		p->kind = KIND_GRAY;
		break;
	case PHOTOMETRIC_MINISWHITE:
		p->kind = KIND_INVERTED;
		break;
	case PHOTOMETRIC_PALETTE:
		p->kind = KIND_PALETTE;
		read_palette(p);
		break;
	case PHOTOMETRIC_RGB:
		p->kind = KIND_RGB;
		break;
	case PHOTOMETRIC_SEPARATED:
		p->kind = KIND_CMYK;
		if (ink != INKSET_CMYK)
			return false;
		break;
	default:
		return false;
	}
	if (p->samples < used_samples[p->kind] || p->samples > SAMPLES_MAX)
		return false;
	p->has_alpha = p->samples > used_samples[p->kind] && find_alpha(p);
	p->nothing = find_nothing(p);
	return true;
}

/* Refuses numbers that 8 bits cannot hold in their order, and bands that the
   pixels would leave out. One sample more may be alpha. */
static int check_samples(struct input *in, TIFF *tiff)
{
	uint16_t format = 0, samples = 0, color = 0;
	unsigned most;

	TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
	TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
	TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &color);
	if (format == SAMPLEFORMAT_INT || format == SAMPLEFORMAT_IEEEFP)
		return picture_refuse(
			in->decoder, -ENOTSUP,
			"TIFF: %s samples: scale them to unsigned 8 or 16 bits, or store arrays (.npy, HDF5)",
			format == SAMPLEFORMAT_INT ? "signed"
						   : "floating-point");
	most = color == PHOTOMETRIC_SEPARATED ? 5
	       : color == PHOTOMETRIC_RGB     ? 4
					      : 2;
	if (color <= PHOTOMETRIC_SEPARATED && samples > most)
		return picture_refuse(
			in->decoder, -ENOTSUP,
			"TIFF: %u bands, of which an image has %u: store arrays (.npy, HDF5)",
			samples, most == 2 ? 1 : most - 1);
	return 0;
}

static int read_page(struct input *in, struct page *p)
{
	unsigned planes = p->planar ? num_read(p) : 1;
	int r = reserve_unit(in, p);

	for (unsigned i = 0; !r && i < planes; i++)
		r = read_plane(p, i) ? refuse(in) : 0;
	free(p->unit);
	free(p->row);
	return r;
}

static uint32_t num_units(TIFF *tiff)
{
	return TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff)
				 : TIFFNumberOfStrips(tiff);
}

/* Reads other colors, such as YCbCr of several compressions, by libtiff's own
   conversion to RGBA. */
static int read_converted(struct input *in, struct page *p, uint16_t turn)
{
	const struct image *image = p->image;
	size_t n = (size_t)image->width * image->height;
	char why[1024] = "";
	cleanup_free uint32_t *rgba = NULL;

	for (uint32_t i = 0; i < num_units(p->tiff); i++)
		if (is_absent(p->tiff, i))
			return picture_refuse(
				in->decoder, -ENOTSUP,
				"TIFF: strips or tiles are left out, of colors that are not gray, RGB or a palette");
	if (!TIFFRGBAImageOK(p->tiff, why))
		return picture_refuse(in->decoder, -ENOTSUP, "TIFF: %.120s",
				      why[0] ? why : "unsupported colors");
	rgba = n <= UNIT_MAX / sizeof(*rgba) ? malloc(n * sizeof(*rgba)) : NULL;
	if (!rgba)
		return picture_refuse(in->decoder, -EFBIG,
				      "TIFF: no memory for %zu pixels", n);
	memset(rgba, 0, n * sizeof(*rgba));
	/* libtiff mirrors, but turns nothing: its rows stay as stored. */
	if (!TIFFReadRGBAImageOriented(p->tiff, image->width, image->height,
				       rgba, turn, 1))
		return refuse(in);
	for (size_t i = 0; i < n; i++) {
		image->pixels[3 * i] = TIFFGetR(rgba[i]);
		image->pixels[3 * i + 1] = TIFFGetG(rgba[i]);
		image->pixels[3 * i + 2] = TIFFGetB(rgba[i]);
	}
	return 0;
}

static int decode_page(struct input *in, TIFF *tiff, struct picture_found *out)
{
	struct page page = { .tiff = tiff, .image = &out->image };
	uint32_t width = 0, height = 0;
	uint16_t turn = ORIENTATION_TOPLEFT;
	int r = check_samples(in, tiff);

	if (r)
		return r;

	TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
	TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
	r = picture_reserve(in->decoder, width, height, &out->image);
	if (r)
		return r;
	TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &turn);
	if (turn < ORIENTATION_TOPLEFT || turn > ORIENTATION_LEFTBOT)
		turn = ORIENTATION_TOPLEFT;
	out->orientation = turn;
	if (!find_kind(&page))
		return read_converted(in, &page, turn);
	return read_page(in, &page);
}

static int decode_tiff(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, struct picture_found *out)
{
	struct input in = { .decoder = d, .bytes = bytes, .size = size };
	TIFF *tiff = open_tiff(&in);
	int r;

	if (!tiff)
		return refuse(&in);
	r = decode_page(&in, tiff, out);
	TIFFClose(tiff);
	return r;
}

#	define DECODE decode_tiff
#else
#	define DECODE NULL
#endif

/* Either byte order; 43 is BigTIFF. */
static bool is_tiff(const uint8_t *bytes, size_t size)
{
	return size >= 4 && (memcmp(bytes, "II*\0", 4) == 0 ||
			     memcmp(bytes, "MM\0*", 4) == 0 ||
			     memcmp(bytes, "II+\0", 4) == 0 ||
			     memcmp(bytes, "MM\0+", 4) == 0);
}

const struct picture_format picture_tiff = {
	.name = "TIFF",
	.extensions = ".tif .tiff",
	.matches = is_tiff,
	.decode = DECODE,
	.package = "libtiff-dev (4.5 or newer)",
};

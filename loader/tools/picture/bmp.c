/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes BMP: 1 to 32 bits per pixel, palettes, bit fields and run lengths,
 * with the headers of OS/2 1 and of all versions of Windows.
 */
#include <errno.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/picture/format.h"

enum {
	FILE_HEAD = 14, /* "BM", size, reserved, offset of the pixels */
	OS2_HEAD = 12,
	WINDOWS_HEAD = 40,
	HEAD_MAX = 124,
	COLORS_MAX = 256,
};

enum compression {
	BMP_NONE = 0,
	BMP_RLE8 = 1,
	BMP_RLE4 = 2,
	BMP_FIELDS = 3,
	BMP_ALPHA_FIELDS = 6,
};

struct bmp {
	const uint8_t *bytes;
	size_t size;
	uint32_t head; /* size of the second header */
	uint32_t width;
	uint32_t height;
	bool top_down;
	unsigned bits;
	uint32_t compression;
	uint32_t colors; /* of the palette, 0: the most */
	uint64_t pixels; /* offset */
	uint32_t masks[3];
	uint8_t palette[COLORS_MAX][3];
};

/* --- headers ------------------------------------------------------------- */

static int refuse_damaged(struct picture_decoder *d, const char *what)
{
	return picture_refuse(d, -EBADMSG, "BMP: %s", what);
}

static int64_t load_signed(const uint8_t *p)
{
	return (int32_t)load32(p);
}

/* The header of OS/2 has 16-bit sides and nothing after the bits per pixel. */
static int read_head(struct picture_decoder *d, struct bmp *b)
{
	const uint8_t *p = b->bytes + FILE_HEAD;
	int64_t width, height;

	if (b->head == OS2_HEAD) {
		b->width = load16(p + 4);
		b->height = load16(p + 6);
		b->bits = load16(p + 10);
		return 0;
	}
	width = load_signed(p + 4);
	height = load_signed(p + 8);
	b->top_down = height < 0;
	height = height < 0 ? -height : height;
	if (width < 0)
		return refuse_damaged(d, "a negative width");
	b->width = (uint32_t)width;
	b->height = (uint32_t)height;
	b->bits = load16(p + 14);
	b->compression = load32(p + 16);
	b->colors = load32(p + 32);
	return 0;
}

/* The header, and the masks and colors behind it. */
static uint64_t palette_at(const struct bmp *b)
{
	uint64_t at = FILE_HEAD + (uint64_t)b->head;

	if (b->head == WINDOWS_HEAD && b->compression == BMP_FIELDS)
		return at + 12;
	if (b->head == WINDOWS_HEAD && b->compression == BMP_ALPHA_FIELDS)
		return at + 16;
	return at;
}

/* The masks are the first members that longer headers add to the Windows
   header; behind a short one they stand alone. */
static int read_masks(struct picture_decoder *d, struct bmp *b)
{
	static const uint32_t fields16[3] = { 0x7c00, 0x3e0, 0x1f };
	static const uint32_t fields32[3] = { 0xff0000, 0xff00, 0xff };
	uint64_t at = FILE_HEAD + WINDOWS_HEAD;

	memcpy(b->masks, b->bits == 16 ? fields16 : fields32, sizeof(b->masks));
	if (b->compression != BMP_FIELDS && b->compression != BMP_ALPHA_FIELDS)
		return 0;
	if (!range_ok(at, 12, b->size))
		return refuse_damaged(d, "the file ends in its header");
	for (int i = 0; i < 3; i++)
		b->masks[i] = load32(b->bytes + at + 4 * (size_t)i);
	if (!b->masks[0] && !b->masks[1] && !b->masks[2])
		memcpy(b->masks, fields32, sizeof(b->masks));
	return 0;
}

/* Colors that are not there are grays, as in Pillow. */
static void read_palette(struct bmp *b)
{
	uint64_t at = palette_at(b);
	size_t step = b->head == OS2_HEAD ? 3 : 4;
	size_t n = min_u64(b->colors && b->colors < COLORS_MAX ? b->colors
							       : COLORS_MAX,
			   (uint64_t)1 << b->bits);

	for (size_t i = 0; i < COLORS_MAX; i++)
		memset(b->palette[i], (int)i, 3);
	for (size_t i = 0; i < n && range_ok(at, step, b->size); i++) {
		for (int c = 0; c < 3; c++)
			b->palette[i][c] = b->bytes[at + 2 - (size_t)c];
		at += step;
	}
}

static const char *find_fault(const struct bmp *b)
{
	switch (b->compression) {
	case BMP_NONE:
		return b->bits == 1 || b->bits == 2 || b->bits == 4 ||
				       b->bits == 8 || b->bits == 16 ||
				       b->bits == 24 || b->bits == 32
			       ? NULL
			       : "bits per pixel";
	case BMP_RLE8:
		return b->bits == 8 && !b->top_down ? NULL : "run lengths";
	case BMP_RLE4:
		return b->bits == 4 && !b->top_down ? NULL : "run lengths";
	case BMP_FIELDS:
	case BMP_ALPHA_FIELDS:
		return (b->bits == 16 || b->bits == 32) &&
				       b->head >= WINDOWS_HEAD && b->head != 64
			       ? NULL
			       : "bit fields";
	}
	return "compression";
}

static int read_heads(struct picture_decoder *d, struct bmp *b)
{
	const char *fault;
	int r;

	b->head = load32(b->bytes + FILE_HEAD);
	if (!range_ok(FILE_HEAD, b->head, b->size))
		return refuse_damaged(d, "the file ends in its header");
	r = read_head(d, b);
	if (r)
		return r;
	fault = find_fault(b);
	if (fault)
		return picture_refuse(
			d, -ENOTSUP,
			"BMP: unsupported %s (%u bits, compression %u)", fault,
			b->bits, b->compression);
	b->pixels = load32(b->bytes + 10);
	if (b->bits <= 8)
		read_palette(b);
	return b->bits > 8 ? read_masks(d, b) : 0;
}

/* --- rows ---------------------------------------------------------------- */

/* Row y of the file. */
static uint8_t *row_of(const struct bmp *b, const struct image *image,
		       uint32_t y)
{
	return image->pixels +
	       (b->top_down ? y : image->height - 1 - y) * image->stride;
}

/* A pixel's value in the bits of `mask`, spread over 0 to 255. */
static uint8_t pick_field(uint32_t pixel, uint32_t mask)
{
	unsigned shift = mask ? (unsigned)__builtin_ctz(mask) : 0;
	uint32_t most = mask >> shift, v = (pixel & mask) >> shift;

	for (; most > 255; most >>= 1)
		v >>= 1;
	return most ? (uint8_t)(v * 255 / most) : 0;
}

static void unpack_indices(const struct bmp *b, const uint8_t *in, uint8_t *out)
{
	unsigned per_byte = 8 / b->bits, last = (1u << b->bits) - 1;

	for (uint32_t x = 0; x < b->width; x++) {
		unsigned shift = 8 - b->bits * (1 + x % per_byte);

		memcpy(out + 3 * (size_t)x,
		       b->palette[in[x / per_byte] >> shift & last], 3);
	}
}

static void unpack_fields(const struct bmp *b, const uint8_t *in, uint8_t *out)
{
	size_t step = b->bits / 8;

	for (uint32_t x = 0; x < b->width; x++, in += step)
		for (int c = 0; c < 3; c++)
			*out++ = pick_field(b->bits == 16 ? load16(in)
							  : load32(in),
					    b->masks[c]);
}

static void unpack_bgr(const struct bmp *b, const uint8_t *in, uint8_t *out)
{
	for (uint32_t x = 0; x < b->width; x++, in += 3)
		for (int c = 0; c < 3; c++)
			*out++ = in[2 - c];
}

static int read_rows(struct picture_decoder *d, const struct bmp *b,
		     const struct image *image)
{
	uint64_t stride = ((uint64_t)b->width * b->bits + 31) / 32 * 4;

	if (!range_ok(b->pixels, stride * b->height, b->size))
		return refuse_damaged(d, "the file ends too early");
	for (uint32_t y = 0; y < b->height; y++) {
		const uint8_t *in = b->bytes + b->pixels + y * stride;
		uint8_t *out = row_of(b, image, y);

		if (b->bits <= 8)
			unpack_indices(b, in, out);
		else if (b->bits == 24)
			unpack_bgr(b, in, out);
		else
			unpack_fields(b, in, out);
	}
	return 0;
}

/* --- run lengths --------------------------------------------------------- */

struct runs {
	const struct bmp *b;
	const struct image *image;
	uint32_t x;
	uint32_t y;
};

/* Pixels outside the image are left out. */
static void put_index(struct runs *r, unsigned index)
{
	if (r->x < r->image->width && r->y < r->image->height)
		memcpy(row_of(r->b, r->image, r->y) + 3 * (size_t)r->x,
		       r->b->palette[index], 3);
	r->x++;
}

/* Puts n pixels, of one index a byte or of two. They begin again after `cycle`
   bytes. */
static void put_pixels(struct runs *r, const uint8_t *in, unsigned n,
		       unsigned cycle)
{
	for (unsigned i = 0; i < n; i++) {
		if (r->b->compression == BMP_RLE8)
			put_index(r, in[i % cycle]);
		else
			put_index(r, i % 2 ? in[i / 2 % cycle] & 15
					   : in[i / 2 % cycle] >> 4);
	}
}

/* Returns the number of bytes of n stored pixels, which are an even number. */
static size_t stored_size(const struct runs *r, unsigned n)
{
	return align_up(r->b->compression == BMP_RLE8 ? n : (n + 1) / 2, 2);
}

static void fill(const struct runs *r)
{
	for (uint32_t y = 0; y < r->image->height; y++)
		for (uint32_t x = 0; x < r->image->width; x++)
			memcpy(r->image->pixels + y * r->image->stride +
				       3 * (size_t)x,
			       r->b->palette[0], 3);
}

/*
 * Codes are pairs of bytes: a number of pixels and their value; or 0, and 0:
 * end of the row, 1: end of the image, 2: two bytes to move right and up
 * follow, or the number of stored pixels that follow.
 */
static int read_runs(struct picture_decoder *d, const struct bmp *b,
		     const struct image *image)
{
	struct runs r = { b, image, 0, 0 };
	uint64_t at = b->pixels;

	fill(&r);
	while (range_ok(at, 2, b->size) && r.y < image->height) {
		const uint8_t *code = b->bytes + at;
		size_t more = 0;

		at += 2;
		if (!code[0] && code[1] == 1)
			return 0;
		if (!code[0] && code[1])
			more = code[1] == 2 ? 2 : stored_size(&r, code[1]);
		if (!range_ok(at, more, b->size))
			break;
		at += more;
		if (code[0]) {
			put_pixels(&r, code + 1, code[0], 1);
		} else if (!code[1]) {
			r.x = 0;
			r.y++;
		} else if (code[1] == 2) {
			r.x += code[2];
			r.y += code[3];
		} else {
			put_pixels(&r, code + 2, code[1], code[1]);
		}
	}
	/* Some writers leave out the end of the image. */
	return r.y >= image->height ||
			       (r.y == image->height - 1 && r.x >= image->width)
		       ? 0
		       : refuse_damaged(d, "the file ends too early");
}

static int decode_bmp(struct picture_decoder *d, const uint8_t *bytes,
		      size_t size, struct picture_found *out)
{
	struct bmp b = { .bytes = bytes, .size = size };
	int r = read_heads(d, &b);

	r = r ? r : picture_reserve(d, b.width, b.height, &out->image);
	if (r)
		return r;
	return b.compression == BMP_RLE8 || b.compression == BMP_RLE4
		       ? read_runs(d, &b, &out->image)
		       : read_rows(d, &b, &out->image);
}

/* Two letters alone are too few to recognize a format. */
static bool is_bmp(const uint8_t *bytes, size_t size)
{
	uint32_t head;

	if (size < FILE_HEAD + OS2_HEAD || memcmp(bytes, "BM", 2) != 0)
		return false;
	head = load32(bytes + FILE_HEAD);
	return head == OS2_HEAD || (head >= WINDOWS_HEAD && head <= HEAD_MAX);
}

const struct picture_format picture_bmp = {
	.name = "BMP",
	.extensions = ".bmp",
	.matches = is_bmp,
	.decode = decode_bmp,
};

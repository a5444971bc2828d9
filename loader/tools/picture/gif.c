/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the first frame of a GIF. */
#include <errno.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/picture/format.h"

enum {
	SCREEN_HEAD = 13, /* name, width, height, flags, background, aspect */
	FRAME_HEAD = 9,	  /* x, y, width, height, flags */
	COLORS_MAX = 256,
	CODES_MAX = 4096,
	CODE_BITS_MAX = 12,
	NO_CODE = CODES_MAX,
};

/* The blocks of a file. */
enum block {
	GIF_EXTENSION = 0x21,
	GIF_FRAME = 0x2c,
	GIF_END = 0x3b,
	GIF_CONTROL = 0xf9, /* an extension: the transparent color */
};

enum flag {
	FLAG_PALETTE = 0x80,
	FLAG_INTERLACED = 0x40,
	FLAG_COLORS = 7, /* 2 to the power of this and 1 */
	FLAG_TRANSPARENT = 1,
};

struct gif {
	const uint8_t *bytes;
	size_t size;
	uint64_t at;
	uint8_t palette[COLORS_MAX][3];
	unsigned fill; /* the color around the frame */
	uint32_t x;
	uint32_t y;
	uint32_t width; /* of the frame */
	uint32_t height;
	bool interlaced;
};

static int refuse_damaged(struct picture_decoder *d, const char *what)
{
	return picture_refuse(d, -EBADMSG, "GIF: %s", what);
}

/* --- codes --------------------------------------------------------------- */

/* Codes of LZW stand for a string: that of another code, and one index. */
struct lzw {
	struct gif *gif;
	const struct image *image;
	unsigned block; /* bytes left in the current sub-block */
	uint32_t bits;
	unsigned num_bits;
	unsigned next; /* code of the next new string */
	unsigned width;
	uint16_t before[CODES_MAX];
	uint8_t last[CODES_MAX];
	uint8_t string[CODES_MAX]; /* reversed */
	/* The next pixel of the frame: */
	uint32_t x;
	uint32_t y;
	unsigned pass;
};

/* The rows of each pass of an interlaced frame. */
static const struct pass {
	uint32_t first;
	uint32_t step;
} passes[] = { { 0, 8 }, { 4, 8 }, { 2, 4 }, { 1, 2 } };

/* The data lies in sub-blocks of up to 255 bytes after their size; one of size
   0 ends it. */
static bool next_byte(struct lzw *z, uint8_t *out)
{
	struct gif *g = z->gif;

	if (!z->block) {
		if (!range_ok(g->at, 1, g->size))
			return false;
		z->block = g->bytes[g->at++];
	}
	if (!z->block || !range_ok(g->at, 1, g->size))
		return false;
	z->block--;
	*out = g->bytes[g->at++];
	return true;
}

static unsigned next_code(struct lzw *z)
{
	unsigned code;
	uint8_t byte;

	while (z->num_bits < z->width) {
		if (!next_byte(z, &byte))
			return NO_CODE;
		z->bits |= (uint32_t)byte << z->num_bits;
		z->num_bits += 8;
	}
	code = z->bits & ((1u << z->width) - 1);
	z->bits >>= z->width;
	z->num_bits -= z->width;
	return code;
}

static bool is_full(const struct lzw *z)
{
	return z->y >= z->gif->height;
}

static void next_row(struct lzw *z)
{
	z->x = 0;
	if (!z->gif->interlaced) {
		z->y++;
		return;
	}
	z->y += passes[z->pass].step;
	while (is_full(z) && ++z->pass < ARRAY_LEN(passes))
		z->y = passes[z->pass].first;
}

static void put_index(struct lzw *z, unsigned index)
{
	const struct gif *g = z->gif;

	if (is_full(z))
		return;
	memcpy(z->image->pixels + (g->y + z->y) * z->image->stride +
		       3 * (size_t)(g->x + z->x),
	       g->palette[index], 3);
	if (++z->x == g->width)
		next_row(z);
}

/* Puts the string of a code. Returns its first index. */
static unsigned put_string(struct lzw *z, unsigned code, unsigned clear)
{
	size_t n = 0;

	while (code > clear) {
		z->string[n++] = z->last[code];
		code = z->before[code];
	}
	put_index(z, code);
	while (n)
		put_index(z, z->string[--n]);
	return code;
}

/* Returns the first index of a code's string. */
static unsigned first_of(const struct lzw *z, unsigned code, unsigned clear)
{
	while (code > clear)
		code = z->before[code];
	return code;
}

static void reset(struct lzw *z, unsigned clear, unsigned bits)
{
	z->next = clear + 2;
	z->width = bits + 1;
}

static void add_string(struct lzw *z, unsigned before, unsigned last)
{
	if (z->next == CODES_MAX)
		return;
	z->before[z->next] = (uint16_t)before;
	z->last[z->next] = (uint8_t)last;
	z->next++;
	if (z->next == 1u << z->width && z->width < CODE_BITS_MAX)
		z->width++;
}

/* Returns false if a code is wrong or missing. */
static bool read_codes(struct lzw *z, unsigned bits)
{
	unsigned clear = 1u << bits, previous = NO_CODE, code;

	reset(z, clear, bits);
	while (!is_full(z)) {
		code = next_code(z);
		if (code == NO_CODE || code == clear + 1)
			return false;
		if (code == clear) {
			reset(z, clear, bits);
			previous = NO_CODE;
			continue;
		}
		/* A string may be the one that it completes. */
		if (code > z->next || (code == z->next && previous == NO_CODE))
			return false;
		if (code >= clear && previous == NO_CODE)
			return false;
		if (previous != NO_CODE)
			add_string(z, previous,
				   first_of(z,
					    code == z->next ? previous : code,
					    clear));
		if (code >= z->next)
			return false;
		put_string(z, code, clear);
		previous = code;
	}
	return true;
}

/* --- blocks -------------------------------------------------------------- */

static bool skip_data(struct gif *g)
{
	unsigned n;

	do {
		if (!range_ok(g->at, 1, g->size))
			return false;
		n = g->bytes[g->at++];
		if (!range_ok(g->at, n, g->size))
			return false;
		g->at += n;
	} while (n);
	return true;
}

/* Colors that are not there are grays, as in Pillow. */
static bool read_palette(struct gif *g, unsigned flags)
{
	size_t n = 3 * ((size_t)2 << (flags & FLAG_COLORS));

	if (!(flags & FLAG_PALETTE))
		return true;
	if (!range_ok(g->at, n, g->size))
		return false;
	for (size_t i = 0; i < COLORS_MAX; i++)
		memset(g->palette[i], (int)i, 3);
	memcpy(g->palette, g->bytes + g->at, n);
	g->at += n;
	return true;
}

/* Reads an extension: the control block has a size, flags, a delay of 2 bytes,
   and the transparent color. */
static bool read_extension(struct gif *g)
{
	const uint8_t *p = g->bytes + g->at;

	if (!range_ok(g->at, 1, g->size))
		return false;
	if (range_ok(g->at, 6, g->size) && p[0] == GIF_CONTROL && p[1] >= 4 &&
	    p[2] & FLAG_TRANSPARENT)
		g->fill = p[5];
	g->at++;
	return skip_data(g);
}

static bool read_frame_head(struct gif *g)
{
	const uint8_t *p = g->bytes + g->at;

	if (!range_ok(g->at, FRAME_HEAD, g->size))
		return false;
	g->at += FRAME_HEAD;
	g->x = load16(p);
	g->y = load16(p + 2);
	g->width = load16(p + 4);
	g->height = load16(p + 6);
	g->interlaced = p[8] & FLAG_INTERLACED;
	return read_palette(g, p[8]);
}

/* Stops behind the head of the first frame. Bytes between blocks are
   skipped. */
static bool find_frame(struct gif *g)
{
	while (range_ok(g->at, 1, g->size)) {
		switch (g->bytes[g->at++]) {
		case GIF_EXTENSION:
			if (!read_extension(g))
				return false;
			break;
		case GIF_FRAME:
			return read_frame_head(g);
		case GIF_END:
			return false;
		}
	}
	return false;
}

static void fill_around(const struct gif *g, const struct image *image)
{
	if (g->width == image->width && g->height == image->height)
		return;
	for (uint32_t y = 0; y < image->height; y++)
		for (uint32_t x = 0; x < image->width; x++)
			memcpy(image->pixels + y * image->stride +
				       3 * (size_t)x,
			       g->palette[g->fill], 3);
}

static int decode_gif(struct picture_decoder *d, const uint8_t *bytes,
		      size_t size, struct picture_found *out)
{
	struct gif g = { .bytes = bytes, .size = size, .at = SCREEN_HEAD };
	struct lzw z = { .gif = &g, .image = &out->image };
	unsigned bits;
	int r;

	for (size_t i = 0; i < COLORS_MAX; i++)
		memset(g.palette[i], (int)i, 3);
	if (size < SCREEN_HEAD || !read_palette(&g, bytes[10]) ||
	    !find_frame(&g) || !range_ok(g.at, 1, size))
		return refuse_damaged(d, "no frame");
	/* A frame may be larger than the screen. */
	r = picture_reserve(
		d, (uint32_t)max_u64(load16(bytes + 6), g.x + g.width),
		(uint32_t)max_u64(load16(bytes + 8), g.y + g.height),
		&out->image);
	if (r)
		return r;
	bits = bytes[g.at++];
	if (!g.width || !g.height || !bits || bits > 8)
		return refuse_damaged(d, "a damaged frame");
	fill_around(&g, &out->image);
	return read_codes(&z, bits)
		       ? 0
		       : refuse_damaged(d, "damaged or incomplete");
}

static bool is_gif(const uint8_t *bytes, size_t size)
{
	return size >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 ||
			     memcmp(bytes, "GIF89a", 6) == 0);
}

const struct picture_format picture_gif = {
	.name = "GIF",
	.extensions = ".gif",
	.matches = is_gif,
	.decode = decode_gif,
};

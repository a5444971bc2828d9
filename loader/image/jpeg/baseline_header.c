/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/baseline_header.h"

#include <stdbool.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/entropy.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/huffman.h"
#include "loader/image/jpeg/idct.h"
#include "loader/image/jpeg/stuffing.h"

enum {
	SOF0 = 0xc0,
	SOF1 = 0xc1, /* extended: more tables */
	DHT = 0xc4,
	SOI = 0xd8,
	SOS = 0xda,
	DQT = 0xdb,
	DRI = 0xdd,
	APP0 = 0xe0,
	APP14 = 0xee,
	APP15 = 0xef,
	COM = 0xfe,
};

enum {
	TABLES = 4, /* tables of each kind */
	QUANTS = 64,
	SIDE_MAX = 65500, /* libjpeg's */
	FRAME_SIZE = 6,	  /* and 3 bytes for each component */
	JFIF_SIZE = 14,
	ADOBE_SIZE = 12,
	ADOBE_TRANSFORM = 11, /* offset of the transform */
	LAST = 63,	      /* coefficient of a scan */
};

struct header {
	struct baseline_image image;
	const uint8_t *quant[TABLES];
	const uint8_t *dc[TABLES];
	const uint8_t *ac[TABLES];
	uint8_t ids[BASELINE_COMPONENTS];
	uint8_t quant_of[BASELINE_COMPONENTS];
	bool jfif;
	bool adobe;
	uint8_t transform;
};

static uint16_t load16_big(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* A DQT segment may have several tables, as a DHT segment may. */
static const char *parse_quants(struct header *h, const uint8_t *p, size_t size)
{
	for (; size; p += 1 + QUANTS, size -= 1 + QUANTS) {
		if (size < 1 + QUANTS || p[0] >= TABLES)
			return "a quantisation table of another kind";
		h->quant[p[0]] = p + 1;
	}
	return NULL;
}

static const char *parse_codes(struct header *h, const uint8_t *p, size_t size)
{
	while (size) {
		unsigned id = p[0] & 15;
		size_t need;

		if (size < 1 + HUFFMAN_CODE_MAX || p[0] >> 4 > 1 ||
		    id >= TABLES)
			return "a Huffman table of another kind";
		need = huffman_size(p + 1);
		if (!need || need > size - 1)
			return "a Huffman table with too many symbols";
		(p[0] >> 4 ? h->ac : h->dc)[id] = p + 1;
		p += 1 + need;
		size -= 1 + need;
	}
	return NULL;
}

/* Turns sampling factors into the pixels that a sample covers. */
static const char *parse_sampling(struct header *h, const uint8_t *p)
{
	struct baseline_image *image = &h->image;
	unsigned blocks = 0;

	for (unsigned i = 0; i < image->components; i++, p += 3) {
		unsigned across = p[1] >> 4;
		unsigned down = p[1] & 15;

		if (across < 1 || across > 2 || down < 1 || down > 2 ||
		    across > image->component[0].blocks_across ||
		    down > image->component[0].blocks_down)
			return "unusual sampling factors";
		image->component[i].blocks_across = (uint8_t)across;
		image->component[i].blocks_down = (uint8_t)down;
		blocks += across * down;
	}
	return blocks > ENTROPY_BLOCKS ? "too many blocks in an MCU" : NULL;
}

/* A component alone is never subsampled, and an MCU of it is one block. */
static void set_sizes(struct baseline_image *image)
{
	struct baseline_component *luma = &image->component[0];

	if (image->components == 1)
		luma->blocks_across = luma->blocks_down = 1;
	for (unsigned i = 0; i < image->components; i++) {
		struct baseline_component *c = &image->component[i];

		c->side = IDCT_SIDE;
		c->across = luma->blocks_across / c->blocks_across;
		c->down = luma->blocks_down / c->blocks_down;
		c->width = div_round_up(image->width, c->across);
		c->height = div_round_up(image->height, c->down);
	}
	image->mcus_across =
		div_round_up(image->width, luma->blocks_across * IDCT_SIDE);
	image->mcus_down =
		div_round_up(image->height, luma->blocks_down * IDCT_SIDE);
}

static const char *parse_frame(struct header *h, const uint8_t *p, size_t size)
{
	struct baseline_image *image = &h->image;
	const char *bad;

	if (image->components)
		return "two frames";
	if (size < FRAME_SIZE || (p[5] != 1 && p[5] != BASELINE_COMPONENTS) ||
	    size != FRAME_SIZE + 3u * p[5])
		return "a number of components other than 1 or 3";
	image->height = load16_big(p + 1);
	image->width = load16_big(p + 3);
	if (p[0] != 8 || !image->width || !image->height ||
	    image->width > SIDE_MAX || image->height > SIDE_MAX)
		return "an unusual size";
	image->components = p[5];
	p += FRAME_SIZE;
	image->component[0].blocks_across = p[1] >> 4;
	image->component[0].blocks_down = p[1] & 15;
	bad = parse_sampling(h, p);
	for (unsigned i = 0; i < image->components; i++) {
		h->ids[i] = p[3 * i];
		h->quant_of[i] = p[3 * i + 2];
	}
	if (!bad)
		set_sizes(image);
	return bad;
}

static const char *parse_interval(struct header *h, const uint8_t *p,
				  size_t size)
{
	if (size != 2)
		return "a restart interval of an unusual size";
	h->image.restart_interval = load16_big(p);
	return NULL;
}

/* libjpeg believes JFIF and Adobe segments that are long enough. */
static void note_application(struct header *h, unsigned marker,
			     const uint8_t *p, size_t size)
{
	if (marker == APP0 && size >= JFIF_SIZE && !memcmp(p, "JFIF", 5))
		h->jfif = true;
	if (marker == APP14 && size >= ADOBE_SIZE && !memcmp(p, "Adobe", 5)) {
		h->adobe = true;
		h->transform = p[ADOBE_TRANSFORM];
	}
	if (marker == ENTRY_MARKER && !h->image.index &&
	    size >= sizeof(ENTRY_NAME) &&
	    !memcmp(p, ENTRY_NAME, sizeof(ENTRY_NAME))) {
		h->image.index = p;
		h->image.index_size = size;
	}
}

/* Without a JFIF or Adobe segment, the components' names decide. */
static bool is_rgb(const struct header *h)
{
	if (h->image.components == 1 || h->jfif)
		return false;
	if (h->adobe)
		return h->transform == 0;
	return !memcmp(h->ids, "RGB", sizeof(h->ids));
}

static const char *set_tables(struct header *h, const uint8_t *p)
{
	for (unsigned i = 0; i < h->image.components; i++, p += 2) {
		struct baseline_component *c = &h->image.component[i];

		if (p[0] != h->ids[i] || p[1] >> 4 >= TABLES ||
		    (p[1] & 15) >= TABLES || h->quant_of[i] >= TABLES)
			return "components in an unusual order";
		c->dc = h->dc[p[1] >> 4];
		c->ac = h->ac[p[1] & 15];
		c->quant = h->quant[h->quant_of[i]];
		if (!c->dc || !c->ac || !c->quant)
			return "a table is missing";
	}
	return NULL;
}

static const char *parse_scan(struct header *h, const uint8_t *p, size_t size)
{
	unsigned n = h->image.components;
	const char *bad;

	if (!n || size != 4 + 2 * n || p[0] != n)
		return "several scans";
	bad = set_tables(h, p + 1);
	if (bad)
		return bad;
	p += 1 + 2 * n;
	if (p[0] != 0 || p[1] != LAST || p[2] != 0)
		return "a scan of some coefficients";
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			if (h->ids[i] == h->ids[k])
				return "two components of one name";
	return is_rgb(h) ? "RGB without conversion" : NULL;
}

static const char *parse_segment(struct header *h, unsigned marker,
				 const uint8_t *p, size_t size)
{
	switch (marker) {
	case SOF0:
	case SOF1:
		return parse_frame(h, p, size);
	case DHT:
		return parse_codes(h, p, size);
	case DQT:
		return parse_quants(h, p, size);
	case DRI:
		return parse_interval(h, p, size);
	case SOS:
		return parse_scan(h, p, size);
	default:
		if (marker != COM && (marker < APP0 || marker > APP15))
			return "another kind of JPEG";
		note_application(h, marker, p, size);
		return NULL;
	}
}

/*
 * Whether the scan can be complete. A block has two codes of at least one bit,
 * so a small file cannot claim 65500 x 65500 pixels and their memory.
 */
static bool is_long_enough(const struct baseline_image *image)
{
	uint64_t blocks = 0;

	for (unsigned i = 0; i < image->components; i++)
		blocks += image->component[i].blocks_across *
			  image->component[i].blocks_down;
	blocks *= (uint64_t)image->mcus_across * image->mcus_down;
	return blocks * 2 <= (uint64_t)image->scan_size * 8;
}

const char *baseline_header_parse(const uint8_t *bytes, size_t size,
				  struct baseline_image *out)
{
	struct header h = { 0 };
	unsigned marker = SOI;
	size_t at = 2;

	if (size < 2 || bytes[0] != 0xff || bytes[1] != SOI)
		return "not a JPEG";
	while (marker != SOS) {
		const char *bad;
		size_t n;

		at += stuffing_fill(bytes + at, size - at);
		if (!range_ok(at, 4, size) || bytes[at] != 0xff)
			return "no marker where one must be";
		marker = bytes[at + 1];
		n = load16_big(bytes + at + 2);
		if (n < 2 || !range_ok(at + 2, n, size))
			return "a segment past the end";
		bad = parse_segment(&h, marker, bytes + at + 4, n - 2);
		if (bad)
			return bad;
		at += 2 + n;
	}
	h.image.scan = bytes + at;
	h.image.scan_size = size - at;
	if (!is_long_enough(&h.image))
		return "too few bytes for so many pixels";
	*out = h.image;
	return NULL;
}

/*
 * Components of half size in both directions are reduced by half as much.
 * libjpeg-turbo does so too, and need not upsample them.
 */
void baseline_reduce(const struct baseline_image *image, unsigned by,
		     struct baseline_image *out)
{
	*out = *image;
	out->width = div_round_up(image->width, by);
	out->height = div_round_up(image->height, by);
	for (unsigned i = 0; by > 1 && i < image->components; i++) {
		struct baseline_component *c = &out->component[i];
		unsigned reduced = by;

		if (c->across == 2 && c->down == 2) {
			reduced /= 2;
			c->across = c->down = 1;
		}
		c->side = (uint8_t)(IDCT_SIDE / reduced);
		c->width = div_round_up(c->width, reduced);
		c->height = div_round_up(c->height, reduced);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/structure.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/marker.h"

enum {
	DQT = 0xdb,
	DNL = 0xdc,
	DRI = 0xdd,
	RST0 = 0xd0,
	RST7 = 0xd7,
	APP0 = 0xe0,
	APP15 = 0xef,
	COM = 0xfe,
	COUNTS = 16, /* lengths of Huffman codes */
	SYMBOLS_MAX = 256,
	QUANTS = 64,
	COMPONENTS_MAX = 4,
};

struct structure_walk {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	struct structure *out;
	unsigned components; /* of the frame */
	uint8_t ids[COMPONENTS_MAX];
	uint32_t interval; /* of restart markers, 0: none */
};

static uint32_t load16_big(const uint8_t *p)
{
	return (uint32_t)(p[0] << 8 | p[1]);
}

static enum structure_part fault(struct structure_walk *w,
				 enum structure_part part, const char *why)
{
	w->out->why = why;
	w->out->at = w->at;
	return part;
}

static bool is_frame(unsigned m)
{
	return m >= MARKER_SOF0 && m <= MARKER_SOF15 && m != MARKER_DHT &&
	       m != MARKER_JPG && m != MARKER_DAC;
}

/* --- segments: each returns NULL, or what is wrong --- */

static const char *check_frame(struct structure_walk *w, const uint8_t *p,
			       size_t n)
{
	if (w->components)
		return "two frames";
	if (n < 6 || n != 6 + 3 * (size_t)p[5])
		return "a frame header of wrong length";
	if (!p[5] || p[5] > COMPONENTS_MAX)
		return "a frame of no components, or of more than 4";
	w->out->height = load16_big(p + 1);
	w->out->width = load16_big(p + 3);
	w->out->has_frame = true;
	w->components = p[5];
	for (unsigned i = 0; i < w->components; i++)
		w->ids[i] = p[6 + 3 * i];
	return NULL;
}

static const char *check_huffman(const uint8_t *p, size_t n)
{
	while (n) {
		size_t symbols = 0;

		if (n <= COUNTS)
			return "a Huffman table that is cut off";
		for (int i = 1; i <= COUNTS; i++)
			symbols += p[i];
		if (symbols > SYMBOLS_MAX || n < 1 + COUNTS + symbols)
			return "a Huffman table of too many symbols";
		if ((p[0] & 0xf) > 3 || p[0] >> 4 > 1)
			return "a Huffman table of unknown number";
		p += 1 + COUNTS + symbols;
		n -= 1 + COUNTS + symbols;
	}
	return NULL;
}

static const char *check_quants(const uint8_t *p, size_t n)
{
	while (n) {
		size_t size = 1 + (p[0] >> 4 ? 2 * QUANTS : QUANTS);

		if ((p[0] & 0xf) > 3 || p[0] >> 4 > 1)
			return "a quantization table of unknown number";
		if (n < size)
			return "a quantization table that is cut off";
		p += size;
		n -= size;
	}
	return NULL;
}

static const char *check_scan_header(struct structure_walk *w, const uint8_t *p,
				     size_t n)
{
	if (!w->components)
		return "a scan without a frame";
	if (n < 1 || !p[0] || p[0] > COMPONENTS_MAX ||
	    n != 4 + 2 * (size_t)p[0])
		return "a scan header of wrong length";
	for (unsigned i = 0; i < p[0]; i++) {
		if (!memchr(w->ids, p[1 + 2 * i], w->components))
			return "a scan of a component that the frame lacks";
	}
	return NULL;
}

static const char *check_segment(struct structure_walk *w, unsigned marker,
				 const uint8_t *p, size_t n)
{
	if (is_frame(marker))
		return check_frame(w, p, n);
	switch (marker) {
	case MARKER_DHT:
		return check_huffman(p, n);
	case DQT:
		return check_quants(p, n);
	case DRI:
		if (n != 2)
			return "a restart interval of wrong length";
		w->interval = load16_big(p);
		return NULL;
	case MARKER_SOS:
		return check_scan_header(w, p, n);
	default:
		return NULL;
	}
}

/* The segment at w->at, behind its marker. */
static enum structure_part take_segment(struct structure_walk *w,
					unsigned marker)
{
	const char *why;
	size_t n;

	if (!range_ok(w->at, 2, w->size))
		return fault(w, STRUCTURE_HEADER, "a segment that is cut off");
	n = load16_big(w->bytes + w->at);
	if (n < 2 || !range_ok(w->at, n, w->size))
		return fault(w, STRUCTURE_HEADER, "a segment of wrong length");
	why = check_segment(w, marker, w->bytes + w->at + 2, n - 2);
	if (why)
		return fault(w, STRUCTURE_HEADER, why);
	w->at += n;
	return STRUCTURE_SOUND;
}

/* --- scans --- */

/* Segments that may follow a scan. */
static bool may_follow(unsigned m)
{
	return m == MARKER_DHT || m == MARKER_SOS || m == DQT || m == DNL ||
	       m == DRI || m == COM || m == MARKER_DAC ||
	       (m >= APP0 && m <= APP15);
}

/* Moves to the next byte FF that is not followed by a 0, and behind the byte
   after it. Returns that byte; 0: there is none. */
static unsigned next_marker(struct structure_walk *w)
{
	while (w->at < w->size) {
		const uint8_t *ff =
			memchr(w->bytes + w->at, 0xff, w->size - w->at);

		if (!ff)
			break;
		w->at = (size_t)(ff - w->bytes) + 1;
		while (w->at < w->size && w->bytes[w->at] == 0xff)
			w->at++;
		if (w->at < w->size && w->bytes[w->at])
			return w->bytes[w->at++];
	}
	w->at = w->size;
	return 0;
}

/* Everything from the data of the first scan on. */
static enum structure_part take_scans(struct structure_walk *w)
{
	enum structure_part part = STRUCTURE_SOUND;
	unsigned restart = 0, m;

	while (part == STRUCTURE_SOUND) {
		m = next_marker(w);
		if (!m)
			return fault(w, STRUCTURE_END, "no end marker");
		if (m == MARKER_EOI)
			return STRUCTURE_SOUND;
		if (m >= RST0 && m <= RST7) {
			if (!w->interval)
				return fault(w, STRUCTURE_SCAN,
					     "a restart marker without an "
					     "interval");
			if (m != RST0 + restart)
				return fault(w, STRUCTURE_SCAN,
					     "restart markers out of order");
			restart = (restart + 1) % 8;
		} else if (may_follow(m)) {
			part = take_segment(w, m);
			restart = m == MARKER_SOS ? 0 : restart;
		} else {
			return fault(w, STRUCTURE_SCAN,
				     "a marker that is not allowed in a scan");
		}
	}
	return part;
}

enum structure_part codec_structure(const uint8_t *bytes, size_t size,
				    struct structure *out)
{
	struct structure_walk w = { .bytes = bytes, .size = size, .out = out };
	enum structure_part part = STRUCTURE_SOUND;
	unsigned m = 0;

	*out = (struct structure){ .why = "" };
	if (size < 4 || bytes[0] != 0xff || bytes[1] != MARKER_SOI)
		return fault(&w, STRUCTURE_START, "no JPEG");
	w.at = 2;
	while (part == STRUCTURE_SOUND && m != MARKER_SOS) {
		m = next_marker(&w);
		if (!m || m == MARKER_EOI)
			return fault(&w, STRUCTURE_HEADER,
				     "it ends before its first scan");
		if (m == MARKER_SOI)
			return fault(&w, STRUCTURE_HEADER, "two start markers");
		/* TEM and restart markers have no length. */
		if (m != 1 && (m < RST0 || m > RST7))
			part = take_segment(&w, m);
	}
	return part == STRUCTURE_SOUND ? take_scans(&w) : part;
}

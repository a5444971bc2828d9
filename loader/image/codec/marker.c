/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/marker.h"

#include <string.h>

#include "fs/base/util/bytes.h"

static uint16_t load16_big(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* A marker is FF, any number of FF more, and a byte that is not 0. */
static unsigned next_code(struct marker_walk *w)
{
	while (w->at < w->size) {
		const uint8_t *ff =
			memchr(w->bytes + w->at, 0xff, w->size - w->at);

		if (!ff)
			break;
		w->at = (size_t)(ff - w->bytes);
		while (w->at < w->size && w->bytes[w->at] == 0xff)
			w->at++;
		if (w->at < w->size && w->bytes[w->at])
			return w->bytes[w->at++];
	}
	return MARKER_EOI;
}

/* TEM, RSTn and SOI stand alone, without a length. */
static bool is_bare(unsigned marker)
{
	return marker == 1 || (marker >= 0xd0 && marker <= MARKER_SOI);
}

bool codec_marker_next(struct marker_walk *w, struct marker_segment *out)
{
	unsigned marker = next_code(w);

	while (is_bare(marker))
		marker = next_code(w);
	if (marker == MARKER_EOI || marker == MARKER_SOS)
		return false;
	if (!range_ok(w->at, 2, w->size))
		return false;

	size_t size = load16_big(w->bytes + w->at);

	if (size < 2 || !range_ok(w->at, size, w->size))
		return false;
	*out = (struct marker_segment){
		.marker = marker,
		.bytes = w->bytes + w->at + 2,
		.size = size - 2,
	};
	w->at += size;
	return true;
}

static bool is_frame(unsigned marker)
{
	return marker >= MARKER_SOF0 && marker <= MARKER_SOF15 &&
	       marker != MARKER_DHT && marker != MARKER_JPG &&
	       marker != MARKER_DAC;
}

unsigned codec_marker_frame(const uint8_t *bytes, size_t size)
{
	struct marker_walk walk = { .bytes = bytes, .size = size };
	struct marker_segment s;

	while (codec_marker_next(&walk, &s))
		if (is_frame(s.marker))
			return s.marker;
	return 0;
}

/* A byte FF of picture data is followed by 0, so that it is no marker. */
bool codec_marker_ends(const uint8_t *bytes, size_t size)
{
	static const uint8_t end[] = { 0xff, MARKER_EOI };
	struct marker_walk walk = { .bytes = bytes, .size = size };
	struct marker_segment s;

	while (codec_marker_next(&walk, &s))
		;
	return memmem(bytes + walk.at, size - walk.at, end, sizeof(end));
}

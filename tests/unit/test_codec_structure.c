/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and markers of JPEGs, checked without decoding. */
#include <stdlib.h>
#include <string.h>

#include "loader/image/codec/structure.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

enum { SIZE = sizeof(JPEG_GRAY) };

static enum structure_part part_of(const uint8_t *bytes, size_t size)
{
	struct structure s;
	enum structure_part part = codec_structure(bytes, size, &s);

	CHECK((part == STRUCTURE_SOUND) == !*s.why);
	CHECK(s.at <= size);
	return part;
}

/* The gray JPEG with other bytes behind its first `marker`. */
static enum structure_part changed(uint8_t marker, size_t where, uint8_t to)
{
	uint8_t bytes[SIZE];
	const uint8_t code[] = { 0xff, marker };
	uint8_t *at;

	memcpy(bytes, JPEG_GRAY, SIZE);
	at = memmem(bytes, SIZE, code, sizeof(code));
	CHECK(at);
	at[where] = to;
	return part_of(bytes, SIZE);
}

static void sound_jpegs_have_their_sides(void)
{
	struct structure s;

	CHECK(!codec_structure(JPEG_GRAY, SIZE, &s));
	CHECK(s.has_frame && s.width == 9 && s.height == 21);
	CHECK(!codec_structure(JPEG_PROGRESSIVE, sizeof(JPEG_PROGRESSIVE), &s));
	CHECK(s.has_frame && s.width == 41 && s.height == 23);
}

static void every_part_can_be_damaged(void)
{
	CHECK(changed(0xd8, 0, 0) == STRUCTURE_START);
	CHECK(changed(0xe0, 2, 0xff) == STRUCTURE_HEADER);
	CHECK(changed(0xdb, 4, 0x09) == STRUCTURE_HEADER);
	CHECK(changed(0xc0, 9, 0) == STRUCTURE_HEADER);
	CHECK(changed(0xc0, 9, 9) == STRUCTURE_HEADER);
	CHECK(changed(0xc4, 4, 0x50) == STRUCTURE_HEADER);
	CHECK(changed(0xc4, 6, 200) == STRUCTURE_HEADER);
	CHECK(changed(0xda, 5, 77) == STRUCTURE_HEADER);
	CHECK(changed(0xda, 12, 0xff) == STRUCTURE_SCAN);
	CHECK(changed(0xd9, 1, 0) == STRUCTURE_END);
}

static void bytes_behind_the_end_are_ignored(void)
{
	uint8_t bytes[SIZE + 9] = { 0 };

	memcpy(bytes, JPEG_GRAY, SIZE);
	CHECK(part_of(bytes, sizeof(bytes)) == STRUCTURE_SOUND);
}

/* Each in a block of its size, for the sanitizer. */
static void every_beginning_is_cut_off(void)
{
	for (size_t n = 0; n < SIZE; n++) {
		uint8_t *bytes = malloc(n + !n);

		CHECK(bytes);
		memcpy(bytes, JPEG_GRAY, n);
		CHECK(part_of(bytes, n) != STRUCTURE_SOUND);
		free(bytes);
	}
}

static void restart_markers_need_an_interval_and_an_order(void)
{
	/* Behind the tables: an interval, and a scan of two markers. */
	static const uint8_t restarts[] = { 0xff, 0xdd, 0, 4, 0, 1 };
	static const uint8_t data[] = { 0x12, 0xff, 0xd0, 0x34, 0xff,
					0xd1, 0x56, 0xff, 0xd9 };
	uint8_t bytes[SIZE + sizeof(restarts) + sizeof(data)];
	const uint8_t sos[] = { 0xff, 0xda };
	const uint8_t *scan = memmem(JPEG_GRAY, SIZE, sos, sizeof(sos));
	size_t head = (size_t)(scan - JPEG_GRAY), n = 0;

	memcpy(bytes, JPEG_GRAY, head);
	n = head;
	memcpy(bytes + n, restarts, sizeof(restarts));
	n += sizeof(restarts);
	memcpy(bytes + n, scan, 10);
	n += 10;
	memcpy(bytes + n, data, sizeof(data));
	CHECK(part_of(bytes, n + sizeof(data)) == STRUCTURE_SOUND);
	bytes[n + 5] = 0xd2;
	CHECK(part_of(bytes, n + sizeof(data)) == STRUCTURE_SCAN);
	bytes[n + 5] = 0xd1;
	bytes[head + 5] = 0; /* no interval */
	CHECK(part_of(bytes, n + sizeof(data)) == STRUCTURE_SCAN);
}

int main(void)
{
	sound_jpegs_have_their_sides();
	every_part_can_be_damaged();
	bytes_behind_the_end_are_ignored();
	every_beginning_is_cut_off();
	restart_markers_need_an_interval_and_an_order();
	return 0;
}

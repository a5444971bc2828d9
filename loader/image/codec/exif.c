/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/exif.h"

#include <stdbool.h>

#include "fs/base/util/bytes.h"

enum {
	TIFF_OFF = 6, /* after "Exif\0\0" */
	ENTRY_SIZE = 12,
	TAG_ORIENTATION = 0x0112,
	TYPE_SHORT = 3,
	TYPE_LONG = 4,
};

struct tiff {
	const uint8_t *bytes;
	size_t size;
	bool big_endian;
};

static uint16_t get16(const struct tiff *t, size_t at)
{
	uint16_t v = load16(t->bytes + at);

	return t->big_endian ? __builtin_bswap16(v) : v;
}

static uint32_t get32(const struct tiff *t, size_t at)
{
	uint32_t v = load32(t->bytes + at);

	return t->big_endian ? __builtin_bswap32(v) : v;
}

/* The first value of an entry, or 0. Exif demands SHORT; cameras write LONG, too,
   and all common readers take it. */
static uint32_t get_value(const struct tiff *t, size_t entry)
{
	switch (get16(t, entry + 2)) {
	case TYPE_SHORT:
		return get16(t, entry + 8);
	case TYPE_LONG:
		return get32(t, entry + 8);
	default:
		return 0;
	}
}

/* The entries of the first directory, at `at`. */
static unsigned search(const struct tiff *t, size_t at)
{
	size_t n, entry;
	uint32_t v;

	if (!range_ok(at, 2, t->size))
		return 1;
	n = get16(t, at);
	for (size_t i = 0; i < n; i++) {
		entry = at + 2 + i * ENTRY_SIZE;
		if (!range_ok(entry, ENTRY_SIZE, t->size))
			return 1;
		v = get16(t, entry) == TAG_ORIENTATION ? get_value(t, entry)
						       : 0;
		if (!v)
			continue;
		return v >= 1 && v <= 8 ? v : 1;
	}
	return 1;
}

unsigned exif_orientation(const uint8_t *segment, size_t size)
{
	struct tiff t;

	if (size < TIFF_OFF + 8 || memcmp(segment, "Exif\0\0", TIFF_OFF))
		return 1;
	t = (struct tiff){ segment + TIFF_OFF, size - TIFF_OFF, false };
	if (!memcmp(t.bytes, "MM", 2))
		t.big_endian = true;
	else if (memcmp(t.bytes, "II", 2))
		return 1;
	return get16(&t, 2) == 42 ? search(&t, get32(&t, 4)) : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entry_index.h"

#include <errno.h>
#include <stdbool.h>

#include "fs/base/util/bytes.h"

/*
 * The header of a segment. All entries but the first follow; the first has only
 * zeros.
 */
enum {
	NAME = 0, /* "beton" and a zero */
	NAME_SIZE = 6,
	VERSION = 6,
	COMPONENTS = 7,
	STEP = 8,	/* 16 bits */
	SCAN_SIZE = 10, /* 32 */
	HASH = 14,	/* 32 */
	HEAD_SIZE = 18,
};

/* An entry: bytes since the previous one, bit, predictors. */
enum {
	DELTA_BITS = 16,
	BIT_BITS = 3,
	DC_AT = DELTA_BITS + BIT_BITS,
	GRAY_SIZE = 4,
	COLOUR_SIZE = 7,
	THIS_VERSION = 1,
};

uint64_t entry_count(const struct entry_scan *scan, uint32_t step)
{
	if (!step || step > scan->mcus_across)
		return 0;
	return ((uint64_t)scan->mcus_across + step - 1) / step *
	       scan->mcus_down;
}

static size_t entry_size(const struct entry_scan *scan)
{
	return scan->components == 1 ? GRAY_SIZE : COLOUR_SIZE;
}

/* The scan's bytes up to its end marker. The segment stores the size. */
static bool is_end(const struct entry_scan *scan, size_t at)
{
	return range_ok(at, 2, scan->size) && scan->bytes[at] == 0xff &&
	       scan->bytes[at + 1] == 0xd9;
}

static bool find_end(const struct entry_scan *scan, size_t *at)
{
	for (*at = 0; *at < scan->size; ++*at)
		if (is_end(scan, *at))
			return true;
	return false;
}

/* Up to eight bytes of the data. */
static uint64_t word_at(const struct entry_scan *scan, size_t end,
			uint32_t byte)
{
	uint64_t word = 0;

	if (range_ok(byte, sizeof(word), end))
		return load64(scan->bytes + byte);
	if (byte < end)
		memcpy(&word, scan->bytes + byte, end - byte);
	return word;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* A hash of the entry's own bits, and of the data that it points to. */
static uint64_t mix_entry(uint64_t hash, uint64_t packed,
			  const struct entry_scan *scan, size_t end,
			  uint32_t byte)
{
	return mix(mix(hash, packed), word_at(scan, end, byte));
}

static uint64_t mix_head(const uint8_t *head)
{
	return mix(mix(0, load64(head)),
		   load16(head + STEP) | (uint64_t)load32(head + SCAN_SIZE)
						 << 16);
}

static uint64_t pack(const struct entry *entry, uint32_t delta)
{
	uint64_t v = delta | (uint64_t)entry->bit << DELTA_BITS;

	for (int i = 0; i < 3; i++)
		v |= ((uint64_t)entry->dc[i] & ((1 << ENTRY_DC_BITS) - 1))
		     << (DC_AT + i * ENTRY_DC_BITS);
	return v;
}

static int16_t unpack_dc(uint64_t v, int i)
{
	unsigned bits =
		v >> (DC_AT + i * ENTRY_DC_BITS) & ((1u << ENTRY_DC_BITS) - 1);

	return (int16_t)((int)(bits ^ -(unsigned)ENTRY_DC_MIN) + ENTRY_DC_MIN);
}

static struct entry unpack(uint64_t v, uint32_t last)
{
	return (struct entry){
		.byte = last + (uint32_t)(v & ENTRY_DELTA_MAX),
		.bit = v >> DELTA_BITS & 7,
		.dc = { unpack_dc(v, 0), unpack_dc(v, 1), unpack_dc(v, 2) },
	};
}

int entry_emit(const struct entry_index *index, const struct entry_scan *scan,
	       uint8_t *out, size_t *size)
{
	size_t each = entry_size(scan);
	uint64_t need = HEAD_SIZE + (uint64_t)(index->n - 1) * each;
	uint64_t hash;
	size_t end;

	if (need > ENTRY_SEGMENT || index->step > UINT16_MAX ||
	    !find_end(scan, &end) || end > UINT32_MAX)
		return -E2BIG;
	memcpy(out + NAME, ENTRY_NAME, NAME_SIZE);
	out[VERSION] = THIS_VERSION;
	out[COMPONENTS] = (uint8_t)scan->components;
	store16(out + STEP, (uint16_t)index->step);
	store32(out + SCAN_SIZE, (uint32_t)end);
	hash = mix_head(out);
	for (uint32_t i = 1; i < index->n; i++) {
		const struct entry *e = &index->entries[i];
		uint32_t delta = e->byte - index->entries[i - 1].byte;
		uint64_t v = pack(e, delta);

		if (delta > ENTRY_DELTA_MAX)
			return -E2BIG;
		memcpy(out + HEAD_SIZE + (i - 1) * each, &v, each);
		hash = mix_entry(hash, v, scan, end, e->byte);
	}
	store32(out + HASH, (uint32_t)hash);
	*size = (size_t)need;
	return 0;
}

uint32_t entry_step(const uint8_t *bytes, size_t size,
		    const struct entry_scan *scan)
{
	uint64_t n;

	if (size < HEAD_SIZE || memcmp(bytes, ENTRY_NAME, NAME_SIZE) ||
	    bytes[VERSION] != THIS_VERSION ||
	    bytes[COMPONENTS] != scan->components ||
	    !is_end(scan, load32(bytes + SCAN_SIZE)))
		return 0;
	n = entry_count(scan, load16(bytes + STEP));
	if (!n || size != HEAD_SIZE + (n - 1) * entry_size(scan))
		return 0;
	return load16(bytes + STEP);
}

int entry_parse(const uint8_t *bytes, size_t size,
		const struct entry_scan *scan, struct entry *out)
{
	uint64_t n = entry_count(scan, entry_step(bytes, size, scan));
	size_t each = entry_size(scan);
	uint64_t hash;

	if (!n)
		return -EBADMSG;
	hash = mix_head(bytes);
	out[0] = (struct entry){ 0 };
	for (uint64_t i = 1; i < n; i++) {
		uint64_t v = 0;

		memcpy(&v, bytes + HEAD_SIZE + (i - 1) * each, each);
		out[i] = unpack(v, out[i - 1].byte);
		hash = mix_entry(hash, v, scan, load32(bytes + SCAN_SIZE),
				 out[i].byte);
	}
	return (uint32_t)hash == load32(bytes + HASH) ? 0 : -EBADMSG;
}

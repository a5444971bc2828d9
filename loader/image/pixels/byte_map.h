/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a function of one byte to many bytes. The general form is a table of
 * 256 results, looked up byte by byte. If the table is equal to simple
 * arithmetic, it is replaced by that, because vector code is several times as
 * fast. The results are those of the table.
 */
#ifndef LOADER_IMAGE_PIXELS_BYTE_MAP_H
#define LOADER_IMAGE_PIXELS_BYTE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Sums of terms below these limits fit in 16 bits with a sign. */
enum {
	BYTE_MAP_VALUES = 256,
	BYTE_MAP_SCALE_MAX = 64,
	BYTE_MAP_ADD_MAX = 8192,
};

enum byte_map_kind {
	BYTE_MAP_SAME,	/* v */
	BYTE_MAP_BITS,	/* (v & keep) ^ flip */
	BYTE_MAP_FLIP,	/* v < from ? v : 255 - v */
	BYTE_MAP_SCALE, /* v * whole + add + (v * part + add_part >> 24),
			   limited to 0..255 */
	BYTE_MAP_TABLE,
};

struct byte_map {
	enum byte_map_kind kind;
	uint8_t keep;
	uint8_t flip;
	uint8_t from;
	uint16_t whole; /* below BYTE_MAP_SCALE_MAX */
	int16_t add;	/* from -BYTE_MAP_ADD_MAX to BYTE_MAP_ADD_MAX */
	uint32_t part;	/* below 2^24 */
	uint32_t add_part;
	uint8_t table[BYTE_MAP_VALUES];
};

/* The result of a value; `kind` is a constant where this is inlined. */
static inline uint8_t byte_map_value(const struct byte_map *map,
				     enum byte_map_kind kind, uint8_t v)
{
	int scaled;

	switch (kind) {
	case BYTE_MAP_SAME:
		return v;
	case BYTE_MAP_BITS:
		return (uint8_t)((v & map->keep) ^ map->flip);
	case BYTE_MAP_FLIP:
		return (uint8_t)(v < map->from ? v : ~v);
	case BYTE_MAP_SCALE:
		scaled = v * map->whole + map->add +
			 (int)((v * map->part + map->add_part) >> 24);
		return (uint8_t)(scaled < 0 ? 0 : scaled < 255 ? scaled : 255);
	default:
		return map->table[v];
	}
}

void byte_map_init(struct byte_map *map, const uint8_t table[BYTE_MAP_VALUES]);

/* Initializes the map for a table of about floor(factor * v + add), limited to
   0..255. */
void byte_map_init_scale(struct byte_map *map,
			 const uint8_t table[BYTE_MAP_VALUES], double factor,
			 double add);

/* `out` may be `in`; otherwise they do not overlap. */
void byte_map_run(const struct byte_map *map, const uint8_t *in, size_t count,
		  uint8_t *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/byte_map.h"

#include <stdbool.h>
#include <string.h>

#include "loader/image/pixels/loops.h"

/* Whether the map's arithmetic makes its table. */
static bool is_table(struct byte_map *map, enum byte_map_kind kind)
{
	map->kind = kind;
	for (unsigned v = 0; v < BYTE_MAP_VALUES; v++) {
		if (byte_map_value(map, kind, (uint8_t)v) != map->table[v])
			return false;
	}
	return true;
}

static bool is_same(struct byte_map *map)
{
	return is_table(map, BYTE_MAP_SAME);
}

/* If each bit of a result depends on that bit of the value alone, 0 and 255
   show all of them. */
static bool is_of_bits(struct byte_map *map)
{
	map->flip = map->table[0];
	map->keep = map->table[0] ^ map->table[BYTE_MAP_VALUES - 1];
	return is_table(map, BYTE_MAP_BITS);
}

static bool is_flip(struct byte_map *map)
{
	unsigned v = 0;

	while (v < BYTE_MAP_VALUES - 1 && map->table[v] == v)
		v++;
	map->from = (uint8_t)v;
	return is_table(map, BYTE_MAP_FLIP);
}

static bool is_scaled(struct byte_map *map, double factor, double add)
{
	/* Above its floor, so that both have parts from 0. */
	double above = add + BYTE_MAP_ADD_MAX;
	uint64_t scale = (uint64_t)(factor * 0x1p24);
	uint64_t offset = (uint64_t)(above * 0x1p24);

	map->whole = (uint16_t)(scale >> 24);
	map->part = scale & 0xffffff;
	map->add = (int16_t)((int)(offset >> 24) - BYTE_MAP_ADD_MAX);
	map->add_part = offset & 0xffffff;
	return is_table(map, BYTE_MAP_SCALE);
}

/*
 * floor(f * v) is T for all f from T / v to (T + 1) / v. Tries the middle of
 * the range that all values leave, in units of 2^-24. These are finer than the
 * differences that a table of bytes can show.
 */
static bool is_scale(struct byte_map *map)
{
	double least = 0, most = BYTE_MAP_VALUES;

	if (map->table[0] || map->table[1] > map->table[2])
		return false;
	for (unsigned v = 1; v < BYTE_MAP_VALUES; v++) {
		double low = map->table[v] / (double)v;
		double high = (map->table[v] + 1.0) / v;

		least = low > least ? low : least;
		if (map->table[v] < BYTE_MAP_VALUES - 1)
			most = high < most ? high : most;
	}
	return most <= BYTE_MAP_SCALE_MAX &&
	       is_scaled(map, (least + most) / 2, 0);
}

void byte_map_init(struct byte_map *map, const uint8_t table[BYTE_MAP_VALUES])
{
	memcpy(map->table, table, BYTE_MAP_VALUES);
	if (is_same(map) || is_of_bits(map) || is_flip(map) || is_scale(map))
		return;
	map->kind = BYTE_MAP_TABLE;
}

/* Where the table's arithmetic rounded up to a whole number, a little more
   does. */
void byte_map_init_scale(struct byte_map *map,
			 const uint8_t table[BYTE_MAP_VALUES], double factor,
			 double add)
{
	static const double more[] = { 0, 0x1p-16, -0x1p-16 };

	memcpy(map->table, table, BYTE_MAP_VALUES);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		if (factor >= 0 && factor < BYTE_MAP_SCALE_MAX &&
		    add > -BYTE_MAP_ADD_MAX && add < BYTE_MAP_ADD_MAX &&
		    is_scaled(map, factor, add + more[i]))
			return;
	}
	byte_map_init(map, table);
}

void byte_map_run(const struct byte_map *map, const uint8_t *in, size_t count,
		  uint8_t *out)
{
	if (map->kind != BYTE_MAP_SAME)
		ISA_BEST(pixel_loops)->map(map, in, count, out);
	else if (out != in)
		memcpy(out, in, count);
}

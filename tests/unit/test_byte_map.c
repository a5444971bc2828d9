/* SPDX-License-Identifier: Apache-2.0 */
/* A map of bytes is its table, however it is made, on each instruction set. */
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/pixels/byte_map.h"
#include "loader/image/pixels/loops.h"
#include "tests/unit/t.h"

enum { BYTES = 3 * 256 + 37, TRIES = 2000 };

static uint8_t in[BYTES + 1];

static void check_loops(const struct byte_map *map,
			const struct pixel_loops *loops, size_t count)
{
	uint8_t out[BYTES + 1], same[BYTES + 1];

	out[count] = same[count] = 77;
	loops->map(map, in, count, out);
	memcpy(same, in, count);
	loops->map(map, same, count, same);
	for (size_t i = 0; i < count; i++) {
		CHECK(out[i] == map->table[in[i]]);
		CHECK(same[i] == out[i]);
	}
	CHECK(out[count] == 77 && same[count] == 77);
}

static void check_map(const struct byte_map *map, const uint8_t *table)
{
	static const size_t counts[] = { 0, 1, 15, 33, BYTES };
	uint8_t out[BYTES];

	CHECK(!memcmp(map->table, table, BYTE_MAP_VALUES));
	byte_map_run(map, in, BYTES, out);
	for (size_t i = 0; i < BYTES; i++)
		CHECK(out[i] == table[in[i]]);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		check_loops(map, &pixel_loops_plain, counts[i]);
		check_loops(map, ISA_BEST(pixel_loops), counts[i]);
	}
}

static enum byte_map_kind check_table(const uint8_t *table)
{
	struct byte_map map;

	byte_map_init(&map, table);
	check_map(&map, table);
	return map.kind;
}

static uint8_t limited(double v)
{
	return (uint8_t)(v < 0 ? 0 : v < 255 ? v : 255);
}

static void arithmetic_is_recognized(void)
{
	uint8_t t[BYTE_MAP_VALUES];

	for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
		t[v] = (uint8_t)v;
	CHECK(check_table(t) == BYTE_MAP_SAME);
	for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
		t[v] = (uint8_t)(255 - v);
	CHECK(check_table(t) == BYTE_MAP_BITS);
	for (unsigned bits = 1; bits < 8; bits++) {
		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = (uint8_t)(v & 0xff00 >> bits);
		CHECK(check_table(t) == BYTE_MAP_BITS);
	}
	for (unsigned from = 1; from < BYTE_MAP_VALUES; from++) {
		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = (uint8_t)(v < from ? v : 255 - v);
		CHECK(check_table(t) == BYTE_MAP_FLIP);
	}
	memset(t, 9, sizeof(t));
	CHECK(check_table(t) == BYTE_MAP_BITS);
}

/* Products in float32, as the operations make them. */
static void scales_are_recognized(void)
{
	struct rng rng = { .key = 5 };
	unsigned found = 0, found_with_add = 0;
	uint8_t t[BYTE_MAP_VALUES];

	for (unsigned i = 0; i < TRIES; i++) {
		float factor = (float)rng_uniform(&rng) * 3;
		float add = (float)(rng_uniform(&rng) - 0.5) * 600;
		struct byte_map map;

		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = limited(factor * (float)v);
		found += check_table(t) == BYTE_MAP_SCALE;
		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = limited(factor * (float)v + add);
		byte_map_init_scale(&map, t, factor, add);
		check_map(&map, t);
		found_with_add += map.kind == BYTE_MAP_SCALE;
	}
	CHECK(found > TRIES * 9 / 10);
	CHECK(found_with_add > TRIES * 9 / 10);
}

/* Also if the caller's description of the table is wrong. */
static void any_table_is_right(void)
{
	static const double odd[] = { -1, 0, 1, 1e9, -1e9, 63.9 };
	struct rng rng = { .key = 6 };
	uint8_t t[BYTE_MAP_VALUES];

	for (unsigned i = 0; i < TRIES / 10; i++) {
		struct byte_map map;

		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = (uint8_t)rng_next(&rng);
		CHECK(check_table(t) == BYTE_MAP_TABLE);
		byte_map_init_scale(&map, t, odd[i % 6], odd[i / 6 % 6]);
		check_map(&map, t);
	}
}

/* One value from arithmetic: the table decides. */
static void almost_is_not_enough(void)
{
	uint8_t t[BYTE_MAP_VALUES];

	for (unsigned at = 0; at < BYTE_MAP_VALUES; at++) {
		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = limited(1.25 * v);
		t[at] ^= 16;
		check_table(t);
		for (unsigned v = 0; v < BYTE_MAP_VALUES; v++)
			t[v] = (uint8_t)(255 - v);
		t[at] ^= 16;
		check_table(t);
	}
}

int main(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		in[i] = (uint8_t)(i * 7);
	arithmetic_is_recognized();
	scales_are_recognized();
	any_table_is_right();
	almost_is_not_enough();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/crc32c.h"

#include <string.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { SIZE = 40000 };

/* The definition: one bit at a time. */
static uint32_t model(uint32_t crc, const uint8_t *p, size_t size)
{
	crc = ~crc;
	for (size_t i = 0; i < 8 * size; i++) {
		crc ^= p[i / 8] >> i % 8 & 1;
		crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* RFC 3720, B.4. */
static void it_is_castagnolis(uint32_t (*f)(uint32_t, const void *, size_t))
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	CHECK(f(0, "", 0) == 0);
	CHECK(f(0, "123456789", 9) == 0xe3069283);
	CHECK(f(0, zeros, 32) == 0x8a9136aa);
	CHECK(f(0, ones, 32) == 0x62a8ab43);
	CHECK(f(0, up, 32) == 0x46dd794e);
	CHECK(f(0, down, 32) == 0x113fdb5c);
}

/* At any alignment, in any two pieces, around every length of a lane. */
static void all_variants_agree(const uint8_t *bytes, struct rng *rng)
{
	size_t at, size, cut;
	uint32_t whole;

	for (unsigned i = 0; i < 200; i++) {
		at = rng_next(rng) % 64;
		size = i < 100 ? i : 2048 * (rng_next(rng) % 13);
		size += i < 100 ? 0 : rng_next(rng) % 24;
		cut = size ? rng_next(rng) % size : 0;
		whole = model(0, bytes + at, size);
		CHECK(crc32c(0, bytes + at, size) == whole);
		CHECK(crc32c_by_table(0, bytes + at, size) == whole);
		CHECK(crc32c(crc32c(0, bytes + at, cut), bytes + at + cut,
			     size - cut) == whole);
		CHECK(crc32c_by_table(crc32c_by_table(0, bytes + at, cut),
				      bytes + at + cut, size - cut) == whole);
	}
}

static void three_are_computed_at_once(const uint8_t *bytes, struct rng *rng)
{
	const uint8_t *at[3];
	uint32_t crc[3], begin[3];
	size_t size;

	for (unsigned i = 0; i < 50; i++) {
		size = i < 40 ? i : rng_next(rng) % 5000;
		for (unsigned j = 0; j < 3; j++) {
			at[j] = bytes + rng_next(rng) % (SIZE - size);
			crc[j] = begin[j] = (uint32_t)rng_next(rng);
		}
		crc32c_three(crc, at, size);
		for (unsigned j = 0; j < 3; j++)
			CHECK(crc[j] == crc32c(begin[j], at[j], size));
	}
}

static void a_flipped_bit_is_found(uint8_t *bytes, struct rng *rng)
{
	uint32_t right = crc32c(0, bytes, SIZE), wrong;
	size_t at, byte;
	unsigned bit;

	for (size_t i = 0; i < 66; i++) {
		at = i == 64   ? 0
		     : i == 65 ? 8 * SIZE - 1
			       : rng_next(rng) % (8 * SIZE);
		bytes[at / 8] ^= (uint8_t)(1 << at % 8);
		wrong = crc32c(0, bytes, SIZE);
		bytes[at / 8] ^= (uint8_t)(1 << at % 8);
		CHECK(crc32c_flipped_bit(wrong, right, SIZE, &byte, &bit));
		CHECK(8 * byte + bit == at);
	}
	CHECK(!crc32c_flipped_bit(right, right, SIZE, &byte, &bit));
	CHECK(!crc32c_flipped_bit(right, ~right, 0, &byte, &bit));
	bytes[5] ^= 9;
	CHECK(!crc32c_flipped_bit(crc32c(0, bytes, SIZE), right, SIZE, &byte,
				  &bit));
	bytes[5] ^= 9;
}

int main(void)
{
	uint8_t *bytes = malloc(SIZE);
	struct rng rng = { .key = 5 };

	CHECK(bytes);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)rng_next(&rng);
	it_is_castagnolis(crc32c);
	it_is_castagnolis(crc32c_by_table);
	all_variants_agree(bytes, &rng);
	three_are_computed_at_once(bytes, &rng);
	a_flipped_bit_is_found(bytes, &rng);
	free(bytes);
	return 0;
}

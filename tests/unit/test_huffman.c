/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/huffman.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { ALL = HUFFMAN_CODE_MAX + HUFFMAN_SYMBOLS, WINDOW_BITS = 64 };

struct definition {
	uint8_t bytes[ALL];
};

/* One step of decoding bit by bit. */
struct symbol {
	bool known;
	uint8_t symbol;
	unsigned bits; /* of code and value */
	int32_t value;
};

static struct huffman *tables;

static uint8_t random_symbol(struct rng *rng, bool ac)
{
	uint64_t v = rng_next(rng);

	if (!ac)
		return (uint8_t)(v % (HUFFMAN_DC_SIZE_MAX + 1));
	if (!(v % 9))
		return v & 256 ? 0xf0 : 0;
	return (uint8_t)((v >> 8 & 15) << 4 |
			 (1 + (v >> 12) % HUFFMAN_AC_SIZE_MAX));
}

/* A code that uses part of the available numbers, never the last one. */
static struct definition random_definition(struct rng *rng, bool ac)
{
	struct definition d = { 0 };
	uint32_t free_codes = 1; /* of this length */
	unsigned n = 0;

	for (int i = 0; i < HUFFMAN_CODE_MAX; i++) {
		uint32_t count;

		free_codes = free_codes * 2;
		count = (uint32_t)(rng_next(rng) % (free_codes / 2 + 1));
		count = (uint32_t)min_u64(count, HUFFMAN_SYMBOLS / 16);
		d.bytes[i] = (uint8_t)count;
		free_codes -= count;
		n += count;
		free_codes = (uint32_t)min_u64(free_codes, 100);
	}
	CHECK(n <= HUFFMAN_SYMBOLS);
	for (unsigned i = 0; i < n; i++)
		d.bytes[HUFFMAN_CODE_MAX + i] = random_symbol(rng, ac);
	return d;
}

static uint32_t take(uint64_t *window, unsigned n)
{
	uint32_t v = n ? (uint32_t)(*window >> (WINDOW_BITS - n)) : 0;

	*window <<= n;
	return v;
}

/* The algorithm of the standard, without a table. */
static struct symbol decode(const struct definition *d, uint64_t window)
{
	const uint8_t *symbol = d->bytes + HUFFMAN_CODE_MAX;
	uint32_t first = 0;
	uint32_t code = 0;

	for (unsigned n = 1; n <= HUFFMAN_CODE_MAX; n++) {
		uint32_t count = d->bytes[n - 1];

		code = code << 1 | take(&window, 1);
		first <<= 1;
		if (code - first < count) {
			unsigned size = symbol[code - first] & 15;
			uint32_t v = take(&window, size);

			return (struct symbol){
				.known = true,
				.symbol = symbol[code - first],
				.bits = n + size,
				.value = size ? huffman_value(v, size) : 0,
			};
		}
		first += count;
		symbol += count;
	}
	return (struct symbol){ 0 };
}

static unsigned length_of(const struct symbol *s)
{
	return s->bits - (s->symbol & 15);
}

static void check_first(const struct huffman_pair *got, struct symbol want)
{
	unsigned run = want.symbol >> 4;

	CHECK(got->bits1 == want.bits);
	if (!want.symbol) {
		CHECK(got->advance == HUFFMAN_END && got->bits == want.bits);
		CHECK(!got->value1 && !got->value2);
		return;
	}
	CHECK(got->skip1 == run && got->value1 == want.value);
	if (got->bits == got->bits1)
		CHECK(got->advance == run + 1 && !got->value2);
}

static void check_second(const struct huffman_pair *got, struct symbol want)
{
	unsigned at = got->skip1 + 1;

	CHECK(want.known);
	CHECK(got->bits == got->bits1 + want.bits);
	CHECK(got->value2 == want.value);
	if (!want.symbol) {
		CHECK(got->advance == at + HUFFMAN_END);
		return;
	}
	CHECK(got->skip2 == at + (want.symbol >> 4));
	CHECK(got->advance == got->skip2 + 1);
}

/* A miss has the code, unless it is too long or invalid. */
static void check_miss(const struct huffman_pair *got, struct symbol want)
{
	CHECK(got->bits == 0 && !got->skip1 && !got->skip2 && !got->value2);
	if (!got->bits1) {
		CHECK(!want.known || length_of(&want) > HUFFMAN_AC_BITS);
		return;
	}
	CHECK(want.known && want.bits > HUFFMAN_AC_BITS);
	CHECK(got->value1 == want.symbol && got->bits1 == length_of(&want));
}

static void check_ac(const struct definition *d)
{
	const struct huffman_ac *ac = huffman_ac(tables, d->bytes);

	CHECK(ac);
	for (uint64_t i = 0; i < 1 << HUFFMAN_AC_BITS; i++) {
		uint64_t window = i << (WINDOW_BITS - HUFFMAN_AC_BITS);
		struct symbol want = decode(d, window);
		struct huffman_pair got;

		memcpy(&got, &ac->entries[i], sizeof(got));
		if (got.advance == HUFFMAN_MISS) {
			check_miss(&got, want);
			continue;
		}
		CHECK(want.known && got.bits <= HUFFMAN_AC_BITS);
		check_first(&got, want);
		if (got.bits > got.bits1)
			check_second(&got, decode(d, window << got.bits1));
	}
}

static void check_dc(const struct definition *d)
{
	const struct huffman_dc *dc = huffman_dc(tables, d->bytes);

	CHECK(dc);
	for (uint64_t i = 0; i < 1 << HUFFMAN_DC_BITS; i++) {
		struct symbol want =
			decode(d, i << (WINDOW_BITS - HUFFMAN_DC_BITS));

		if (!want.known || length_of(&want) > HUFFMAN_DC_BITS) {
			CHECK(!dc->entries[i].bits);
			continue;
		}
		CHECK(dc->entries[i].bits == want.bits);
		CHECK(dc->entries[i].size == want.symbol);
	}
}

static void check_codes(const struct definition *d,
			const struct huffman_codes *codes, struct rng *rng)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t window = rng_next(rng);
		struct symbol want = decode(d, window);
		uint8_t symbol = 0;
		unsigned n = huffman_find(codes, window, &symbol);

		CHECK(!n == !want.known);
		CHECK(!n || (n == length_of(&want) && symbol == want.symbol));
	}
}

static void tables_find_what_decoding_bit_by_bit_finds(void)
{
	struct rng rng = { .key = 1 };

	for (int i = 0; i < 300; i++) {
		struct definition ac = random_definition(&rng, true);
		struct definition dc = random_definition(&rng, false);

		check_ac(&ac);
		check_codes(&ac, &huffman_ac(tables, ac.bytes)->codes, &rng);
		check_dc(&dc);
		check_codes(&dc, &huffman_dc(tables, dc.bytes)->codes, &rng);
	}
}

static void values_are_those_of_the_standard(void)
{
	CHECK(huffman_value(5, 0) == 0);
	CHECK(huffman_value(0, 1) == -1 && huffman_value(1, 1) == 1);
	CHECK(huffman_value(0, 3) == -7 && huffman_value(3, 3) == -4);
	CHECK(huffman_value(4, 3) == 4 && huffman_value(7, 3) == 7);
}

static void a_table_is_made_once(void)
{
	struct rng rng = { .key = 2 };
	struct definition kept = random_definition(&rng, true);
	const struct huffman_ac *first = huffman_ac(tables, kept.bytes);

	for (int i = 0; i < 50; i++) {
		struct definition other = random_definition(&rng, true);

		CHECK(huffman_ac(tables, other.bytes) != first);
		CHECK(huffman_ac(tables, kept.bytes) == first);
	}
	check_ac(&kept);
}

static void a_table_stays_until_seven_others_came(void)
{
	struct rng rng = { .key = 3 };
	struct definition kept = random_definition(&rng, true);
	const struct huffman_ac *first = huffman_ac(tables, kept.bytes);
	struct huffman_ac copy = *first;

	for (int i = 0; i < 7; i++) {
		struct definition other = random_definition(&rng, true);

		CHECK(huffman_ac(tables, other.bytes));
	}
	CHECK(!memcmp(first, &copy, sizeof(copy)));
}

static void invalid_codes_are_refused(void)
{
	struct definition all_ones = { .bytes = { 2, [16] = 1, 2 } };
	struct definition too_many = { .bytes = { 0, 5, [16] = 1, 2, 3, 4,
						  5 } };
	struct definition long_ones = { .bytes = { 1, 1, 1, 2, [16] = 1, 2, 3,
						   4, 5 } };
	struct definition full = { 0 };

	CHECK(!huffman_ac(tables, all_ones.bytes));
	CHECK(!huffman_dc(tables, all_ones.bytes));
	CHECK(!huffman_ac(tables, too_many.bytes));
	CHECK(!huffman_ac(tables, long_ones.bytes));
	memset(full.bytes + 8, 255, 2);
	CHECK(!huffman_size(full.bytes));
	CHECK(!huffman_ac(tables, full.bytes));
	CHECK(!huffman_dc(tables, full.bytes));
}

static void impossible_tables_are_refused(void)
{
	static const uint8_t bad[] = { 0x0b, 0x10, 0xe0, 0xff };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct definition d = { .bytes = { 1, [16] = bad[i] } };

		CHECK(!huffman_ac(tables, d.bytes));
	}

	struct definition d = { .bytes = { 1, [16] = 12 } };

	CHECK(!huffman_dc(tables, d.bytes));
	/* The cache does not return a refused table. */
	CHECK(!huffman_dc(tables, d.bytes));
}

int main(void)
{
	CHECK(!huffman_open(&tables));
	tables_find_what_decoding_bit_by_bit_finds();
	values_are_those_of_the_standard();
	a_table_is_made_once();
	a_table_stays_until_seven_others_came();
	invalid_codes_are_refused();
	impossible_tables_are_refused();
	huffman_close(tables);
	huffman_close(NULL);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/huffman_best.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static struct huffman *tables;

/* Both are codes for the decoder; how many symbols they have. */
static unsigned check_codes(const struct symbols_codes *codes)
{
	unsigned n = 0;

	for (int t = 0; t < SYMBOLS_TABLES; t++) {
		const uint8_t *d = codes->definition[t];

		CHECK(t % SYMBOLS_KINDS == SYMBOLS_DC
			      ? huffman_dc(tables, d) != NULL
			      : huffman_ac(tables, d) != NULL);
		n += (unsigned)(huffman_size(d) - HUFFMAN_CODE_MAX);
	}
	return n;
}

/* 12 of DC; of AC 16 runs with 10 sizes, the end of the block, 16 zeros. */
static void all_symbols_have_codes(void)
{
	struct symbols none = { 0 };
	struct symbols_codes codes;

	symbols_make_codes(&none, true, &codes);
	CHECK(check_codes(&codes) == 2 * (12 + 162));
	symbols_make_codes(&none, false, &codes);
	CHECK(check_codes(&codes) == 0);
}

/* 8, 4, 2, 1, 1 have 1, 2, 3, 4, 4 bits, but for the code of all ones. */
static void codes_are_the_shortest(void)
{
	struct symbols s = { 0 };
	struct symbols_codes codes;
	const uint8_t *d = codes.definition[SYMBOLS_DC];

	for (int i = 0; i < 4; i++)
		s.counts[SYMBOLS_DC][i] = 8u >> i;
	s.counts[SYMBOLS_DC][4] = 1;
	symbols_make_codes(&s, false, &codes);
	CHECK(check_codes(&codes) == 5);
	CHECK(!memcmp(d, (uint8_t[]){ 1, 1, 1, 1, 1 }, 5));
	CHECK(!memcmp(d + HUFFMAN_CODE_MAX, (uint8_t[]){ 0, 1, 2 }, 3));
	/* Codes, and values of as many bits as the symbol has. */
	CHECK(symbols_bits(&s, &codes) ==
	      8 + 4 * (2 + 1) + 2 * (3 + 2) + 4 + 3 + 5 + 4);
}

/* Fibonacci's numbers make the deepest trees. */
static void no_code_is_too_long(void)
{
	struct symbols s = { 0 };
	struct symbols_codes codes;
	uint64_t a = 1;
	uint64_t b = 1;

	for (unsigned i = 0; i < 80; i++) {
		uint64_t *counts = s.counts[SYMBOLS_AC];
		uint64_t next = a + b;

		counts[(i / 10) << 4 | (1 + i % 10)] = a;
		a = b;
		b = next;
	}
	symbols_make_codes(&s, false, &codes);
	CHECK(check_codes(&codes) == 80);
	symbols_make_codes(&s, true, &codes);
	CHECK(check_codes(&codes) == 2 * (12 + 162));
}

/* 18 zeros, a 3, zeros to the end; DC 100 after 101. */
static void blocks_are_counted(void)
{
	int16_t block[SYMBOLS_BLOCK] = { [0] = 100, [33] = 3 };
	struct symbols s = { 0 };
	struct symbols twice = { 0 };

	/* Place 33 is the 19th along the zigzag. */
	symbols_count_block(&s, true, 101, block);
	CHECK(s.counts[SYMBOLS_KINDS + SYMBOLS_DC][1] == 1);
	CHECK(s.counts[SYMBOLS_KINDS + SYMBOLS_AC][HUFFMAN_ZEROS] == 1);
	CHECK(s.counts[SYMBOLS_KINDS + SYMBOLS_AC][2 << 4 | 2] == 1);
	CHECK(s.counts[SYMBOLS_KINDS + SYMBOLS_AC][0] == 1);
	block[63] = -1;
	symbols_count_block(&s, false, 100, block);
	CHECK(s.counts[SYMBOLS_DC][0] == 1);
	CHECK(!s.counts[SYMBOLS_AC][0]);
	symbols_add(&twice, &s);
	symbols_add(&twice, &s);
	CHECK(twice.counts[SYMBOLS_AC][2 << 4 | 2] == 2);
}

int main(void)
{
	CHECK(!huffman_open(&tables));
	all_symbols_have_codes();
	codes_are_the_shortest();
	no_code_is_too_long();
	blocks_are_counted();
	huffman_close(tables);
	return 0;
}

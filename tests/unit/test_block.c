/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of rows, as the Python package makes them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/tools/python/block.h"
#include "tests/unit/t.h"

#define MAGIC UINT64_C(0x73776f726e6f7465)

enum { ROWS = 2, COLUMNS = 3, WORDS = 38 };

/* Two rows: integers, bytes and pixels. The second row has an error. */
static const uint64_t good[WORDS] = {
	MAGIC,
	ROWS,
	COLUMNS,
	/* kind, index, data, size: errors, integers, bytes, pixels */
	BLOCK_BYTES,
	152,
	176,
	2,
	BLOCK_INT,
	0,
	184,
	0,
	BLOCK_BYTES,
	200,
	224,
	3,
	BLOCK_PIXELS,
	152,
	176,
	2,
	/* 152: offsets of the errors */
	0,
	0,
	2,
	/* 176: "no" */
	0x6f6e,
	/* 184 */
	(uint64_t)-7,
	9,
	/* 200 */
	0,
	1,
	3,
	/* 224: "abc" */
	0x636261,
	/* 232: pixels: offsets, sizes, bytes */
	0,
	4,
	9,
	2,
	2,
	1,
	0,
	0,
	0,
};

static struct block *map(const uint64_t *words, int expected)
{
	int fd = memfd_create("block", 0);
	struct block *b = NULL;

	CHECK(fd >= 0 && write(fd, words, sizeof(good)) == sizeof(good));
	CHECK(block_map(fd, 0, sizeof(good), ROWS, COLUMNS, &b) == expected);
	close(fd);
	return b;
}

static void check_values(void)
{
	struct block_value v = { 0 };
	struct block *b = map(good, 0), *same = block_get(b);
	char why[8];

	block_put(&b);
	CHECK(!b);
	CHECK(!block_value(same, 0, 0, &v) && v.integer == -7);
	CHECK(!block_value(same, 0, 1, &v) && v.integer == 9);
	CHECK(!block_value(same, 1, 1, &v));
	CHECK(v.size == 2 && !memcmp(v.bytes, "bc", 2));
	CHECK(!block_refuses(same, 0, why, sizeof(why)));
	CHECK(block_refuses(same, 1, why, sizeof(why)) && !strcmp(why, "no"));
	CHECK(block_refuses(same, 2, why, sizeof(why)));
	CHECK(block_value(same, 3, 0, &v) == -EBADMSG);
	CHECK(block_value(same, 0, 2, &v) == -EBADMSG);
	block_put(&same);
}

static void check_pixels(void)
{
	uint64_t words[WORDS];
	struct block_value v = { 0 };
	struct block *b;

	memcpy(words, good, sizeof(good));
	/* Offsets and sizes at 232, and 9 bytes from 0 on. */
	words[16] = 232;
	words[17] = 0;
	words[18] = 9;
	b = map(words, 0);
	CHECK(!block_value(b, 2, 0, &v));
	CHECK(v.width == 2 && v.height == 2 && v.channels == 1 && v.size == 4);
	v = (struct block_value){ 0 };
	CHECK(!block_value(b, 2, 1, &v) && !v.channels && v.size == 5);
	block_put(&b);
	words[32] = 3; /* a width that the bytes do not have */
	b = map(words, 0);
	CHECK(block_value(b, 2, 0, &v) == -EBADMSG);
	block_put(&b);
}

static void check_damage(void)
{
	struct block_value v = { 0 };

	for (size_t i = 0; i < WORDS; i++) {
		uint64_t words[WORDS];
		struct block *b;
		char why[8];

		memcpy(words, good, sizeof(good));
		words[i] = UINT64_MAX;
		b = map(words, i < 3 ? -EBADMSG : 0);
		for (uint64_t row = 0; b && row < ROWS; row++) {
			block_refuses(b, row, why, sizeof(why));
			for (uint64_t c = 0; c < COLUMNS; c++)
				block_value(b, c, row, &v);
		}
		block_put(&b);
	}
}

int main(void)
{
	check_values();
	check_pixels();
	check_damage();
	return 0;
}

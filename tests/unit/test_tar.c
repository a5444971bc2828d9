/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/namespace/shard_layout.h"

#include <string.h>

#include "fs/util/bytes.h"
#include "tests/unit/t.h"

/* Where POSIX puts them. */
enum { MODE = 100, SIZE = 124, TIME = 136, SUM = 148, TYPE = 156, MAGIC = 257 };

static uint64_t octal(const char *at)
{
	return strtoull(at, NULL, 8);
}

static unsigned sum_of(const char header[TAR_BLOCK])
{
	unsigned sum = 8 * ' ';

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= SUM && i < SUM + 8 ? 0 : (unsigned char)header[i];
	return sum;
}

static void check(const char *name, uint64_t size, int64_t time,
		  uint64_t told_time)
{
	char h[TAR_BLOCK];

	tar_header(h, name, size, time);
	CHECK(!strcmp(h, name));
	CHECK(!memcmp(h + MODE, "0000444", 8));
	CHECK(octal(h + SIZE) == size && !h[SIZE + 11]);
	CHECK(octal(h + TIME) == told_time && !h[TIME + 11]);
	CHECK(octal(h + SUM) == sum_of(h));
	CHECK(!h[SUM + 6] && h[SUM + 7] == ' ');
	CHECK(h[TYPE] == '0' && !memcmp(h + MAGIC,
					"ustar\0"
					"00",
					8));
}

int main(void)
{
	char longest[TAR_NAME_MAX + 1];

	memset(longest, 'x', TAR_NAME_MAX);
	longest[TAR_NAME_MAX] = '\0';
	check("000042.jpg", 0, 0, 0);
	check("000042.jpg", 12345, 1700000000, 1700000000);
	check(longest, TAR_SIZE_MAX, INT64_MAX, TAR_SIZE_MAX);
	check("a", 1, -1, 0);
	return 0;
}

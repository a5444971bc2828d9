/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/stream_copy.h"

#include "tests/unit/t.h"

enum { SIZE = 1000, GUARD = 7 };

static uint8_t from[SIZE], to[SIZE];

/* Every size and alignment around a line of the cache. */
static void copies_all_bytes_and_no_others(void)
{
	for (size_t at = 0; at < 70; at++) {
		for (size_t size = 0; size < 300; size++) {
			memset(to, GUARD, sizeof(to));
			stream_copy(to + at, from + 5, size);
			CHECK(!memcmp(to + at, from + 5, size));
			for (size_t i = 0; i < at; i++)
				CHECK(to[i] == GUARD);
			for (size_t i = at + size; i < SIZE; i++)
				CHECK(to[i] == GUARD);
		}
	}
}

int main(void)
{
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 31 + 1);
	copies_all_bytes_and_no_others();
	return 0;
}

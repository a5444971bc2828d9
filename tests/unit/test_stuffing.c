/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/stuffing.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { LONGEST = 300 };

/* Byte by byte, as the standard words it. */
static size_t remove_slowly(const uint8_t *bytes, size_t size, uint8_t *out,
			    size_t *n)
{
	size_t at = 0;

	for (*n = 0; at < size; at++) {
		if (bytes[at] == 0xff && (at + 1 == size || bytes[at + 1]))
			break;
		out[(*n)++] = bytes[at];
		if (bytes[at] == 0xff)
			at++;
	}
	return at;
}

/* In memory of exact sizes, so that a sanitizer sees each byte outside. */
static void check(const uint8_t *bytes, size_t size)
{
	uint8_t *in = malloc(size ? size : 1);
	uint8_t *out = malloc(size ? size : 1);
	uint8_t wanted[LONGEST];
	size_t n = LONGEST, wanted_n;
	size_t read;

	CHECK(in && out);
	memcpy(in, bytes, size);
	read = stuffing_remove(in, size, out, &n);
	CHECK(read == remove_slowly(in, size, wanted, &wanted_n));
	CHECK(n == wanted_n);
	CHECK(!memcmp(out, wanted, n));
	free(in);
	free(out);
}

static void every_length(void)
{
	uint8_t bytes[LONGEST];

	for (size_t i = 0; i < LONGEST; i++)
		bytes[i] = (uint8_t)(i % 251);
	for (size_t size = 0; size <= LONGEST; size++)
		check(bytes, size);
}

/* 0xff before a zero, before another byte, and as the last one, everywhere. */
static void every_place(void)
{
	static const uint8_t next[] = { 0, 0xd9, 0xff };
	uint8_t bytes[100];

	for (size_t at = 0; at < sizeof(bytes); at++)
		for (size_t i = 0; i < sizeof(next); i++) {
			memset(bytes, 7, sizeof(bytes));
			bytes[at] = 0xff;
			if (at + 1 < sizeof(bytes))
				bytes[at + 1] = next[i];
			check(bytes, sizeof(bytes));
		}
}

static void random_bytes(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 3000; round++) {
		uint8_t bytes[LONGEST];
		size_t size = rng_key(&state, 1) % (LONGEST + 1);

		for (size_t i = 0; i < size; i++) {
			uint64_t v = rng_key((uint64_t[]){ state, i }, 2);

			/* Many 0xff, and after most of them a zero. */
			bytes[i] = v % 8 ? (uint8_t)(v >> 8) : 0xff;
			if (i && bytes[i - 1] == 0xff && v % 64)
				bytes[i] = 0;
		}
		check(bytes, size);
		state++;
	}
}

int main(void)
{
	every_length();
	every_place();
	random_bytes();
	return 0;
}

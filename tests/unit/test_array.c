/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/util/array.h"
#include "tests/unit/t.h"

enum { ROWS = 3, VALUES = 4 * ROWS * 4 };

/* An array of float32 (3, 4) in `out`; its size. */
static uint64_t make(uint8_t out[ARRAY_HEADER_MAX + VALUES])
{
	const uint64_t shape[] = { ROWS, 4 };
	size_t n = array_header(out, "<f4", 2, shape);

	memset(out + n, 7, VALUES);
	return n + VALUES;
}

static void a_header_is_read_back(void)
{
	uint8_t bytes[ARRAY_HEADER_MAX + VALUES];
	uint64_t size = make(bytes);
	char text[ARRAY_TEXT_SIZE];
	struct array a;

	CHECK(array_parse(bytes, size, size, &a));
	CHECK(!strcmp(a.dtype, "<f4") && a.ndim == 2 && a.offset == 32);
	CHECK(a.shape[0] == ROWS && a.shape[1] == 4);
	CHECK(!strcmp(array_text(&a, text), "<f4 (?, 4)"));
}

static void an_array_may_have_no_rows(void)
{
	const uint64_t shape[] = { 0, 4 };
	uint8_t bytes[ARRAY_HEADER_MAX];
	size_t size = array_header(bytes, "<i8", 2, shape);
	struct array a;

	CHECK(array_parse(bytes, size, size, &a) && !a.shape[0]);
}

static void every_shorter_or_longer_value_is_no_array(void)
{
	uint8_t bytes[ARRAY_HEADER_MAX + VALUES];
	uint64_t size = make(bytes);
	struct array a;

	for (uint64_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n + 1); /* sanitizers see its end */

		memcpy(copy, bytes, n);
		CHECK(!array_parse(copy, n, n, &a) && !a.ndim);
		free(copy);
	}
	CHECK(!array_parse(bytes, size, size + 1, &a));
}

static void the_header_alone_is_enough_for_the_type(void)
{
	uint8_t bytes[ARRAY_HEADER_MAX + VALUES];
	uint64_t size = make(bytes);
	struct array a;

	CHECK(array_parse(bytes, ARRAY_HEADER_MAX, size, &a) && a.ndim == 2);
}

struct damage {
	size_t at;
	uint64_t value;
};

static void damaged_headers_are_no_arrays(void)
{
	static const struct damage damages[] = {
		{ 0, 0 },	     /* magic */
		{ 8, 0x00ff003466 }, /* type */
		{ 8, (uint64_t)9 << 32 | 0x34663c },
		{ 16, UINT64_MAX }, /* rows */
		{ 16, (uint64_t)1 << 62 },
		{ 24, 0 }, /* columns */
		{ 24, UINT64_MAX },
		{ 24, (uint64_t)1 << 60 },
	};
	struct array a;

	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		uint8_t bytes[ARRAY_HEADER_MAX + VALUES];
		uint64_t size = make(bytes);

		store64(bytes + damages[i].at, damages[i].value);
		CHECK(!array_parse(bytes, size, size, &a));
	}
}

static void a_row_of_no_elements_is_refused(void)
{
	const uint64_t shape[] = { UINT64_MAX, 0 };
	uint8_t bytes[ARRAY_HEADER_MAX];
	size_t size = array_header(bytes, "<f4", 2, shape);
	struct array a;

	CHECK(!array_parse(bytes, size, size, &a));
}

static void arrays_are_alike_whatever_their_rows(void)
{
	uint8_t bytes[ARRAY_HEADER_MAX + VALUES];
	uint64_t size = make(bytes);
	struct array a, b;

	CHECK(array_parse(bytes, size, size, &a));
	b = a;
	b.shape[0] = 9;
	CHECK(array_is_alike(&a, &b));
	b.shape[1] = 5;
	CHECK(!array_is_alike(&a, &b));
	b = a;
	memcpy(b.dtype, "<i4", 4);
	CHECK(!array_is_alike(&a, &b));
}

int main(void)
{
	a_header_is_read_back();
	an_array_may_have_no_rows();
	every_shorter_or_longer_value_is_no_array();
	the_header_alone_is_enough_for_the_type();
	damaged_headers_are_no_arrays();
	a_row_of_no_elements_is_refused();
	arrays_are_alike_whatever_their_rows();
	return 0;
}

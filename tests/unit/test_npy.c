/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beton/batch.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/npy.h"
#include "tests/unit/t.h"

static void check_header(const char *dtype, uint32_t ndim,
			 const uint64_t *shape, const char *tuple)
{
	char head[NPY_HEADER_MAX + 1], want[NPY_HEADER_MAX];
	size_t size = npy_header(head, dtype, ndim, shape);

	head[size] = '\0';
	CHECK(size % 64 == 0 && size <= NPY_HEADER_MAX);
	CHECK(!memcmp(head, "\x93NUMPY\x01\x00", 8));
	CHECK(load16(head + 8) + 10u == size && head[size - 1] == '\n');
	snprintf(want, sizeof(want),
		 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
		 dtype, tuple);
	CHECK(!strncmp(head + 10, want, strlen(want)));
	for (const char *c = head + 10 + strlen(want); c < head + size - 1; c++)
		CHECK(*c == ' ');
}

static void npy_headers_are_numpys(void)
{
	check_header("<f4", 0, NULL, "()");
	check_header("|u1", 1, (uint64_t[]){ 5 }, "(5,)");
	check_header("<f8", 2, (uint64_t[]){ 2, 3 }, "(2, 3,)");
	check_header("<i8", 1, (uint64_t[]){ UINT64_MAX },
		     "(18446744073709551615,)");
}

static void the_longest_npy_header_fits(void)
{
	char head[NPY_HEADER_MAX];
	uint64_t shape[BETON_MAX_NDIM + 1];

	for (size_t i = 0; i < ARRAY_LEN(shape); i++)
		shape[i] = UINT64_MAX;
	CHECK(npy_header(head, "<M8[1000000ns]", ARRAY_LEN(shape), shape) <=
	      NPY_HEADER_MAX);
}

struct header {
	const char *text;
	const char *dtype;
	uint32_t ndim;
	uint64_t first; /* of the shape */
};

static const struct header headers[] = {
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", "<f4",
	  2, 3 },
	{ "{'shape':(7,),'fortran_order':False,'descr':'|u1'}  \n", "|u1", 1,
	  7 },
	{ "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "<f8", 0,
	  0 },
};

static const char *const mistakes[] = {
	"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } x",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), ",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
	"{'descr': '<f4', 'fortran_order': False, 'shape': (",
	"{'descr': '<f4', 'fortran_order': False}",
	"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
	"{'descr': '<f4",
	"{'descr': '0123456789abcdef', 'fortran_order': False, 'shape': ()}",
	"{'descr': '<f4' 'fortran_order': False 'shape': (3,)}",
	"{'descr': '<f4', 'fortran_order': False, 'shape': "
	"(99999999999999999999,)}",
	"{'descr': '<f4', 'fortran_order': False, 'shape': "
	"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
	"",
};

/* In memory of its own, so that reading past its end is found. */
static bool parse(unsigned version, const char *text, size_t cut,
		  struct npy *out)
{
	size_t start = version > 1 ? 12 : 10, size = start + strlen(text) - cut;
	uint8_t *bytes = calloc(1, size);
	bool ok;

	CHECK(bytes && cut <= strlen(text));
	memcpy(bytes, "\x93NUMPY", 6);
	bytes[6] = (uint8_t)version;
	store16(bytes + 8, (uint16_t)strlen(text));
	memcpy(bytes + start, text, strlen(text) - cut);
	ok = npy_parse(bytes, size, out);
	free(bytes);
	return ok;
}

static void headers_are_read(void)
{
	struct npy npy;

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		const struct header *h = &headers[i];

		CHECK(!parse(0, h->text, 0, &npy) &&
		      !parse(4, h->text, 0, &npy));
		for (unsigned version = 1; version <= 3; version++) {
			CHECK(!parse(version, h->text, 1, &npy));
			CHECK(parse(version, h->text, 0, &npy));
			CHECK(!strcmp(npy.dtype, h->dtype));
			CHECK(npy.ndim == h->ndim && npy.shape[0] == h->first);
			CHECK(npy.offset ==
			      (version > 1 ? 12 : 10) + strlen(h->text));
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++)
		CHECK(!parse(1, mistakes[i], 0, &npy));
	CHECK(!npy_parse("\x93NUMPY\1", 7, &npy) && !npy_parse("", 0, &npy));
}

static void fortran_order_is_read_if_wanted(void)
{
	char head[NPY_HEADER_MAX];
	const uint64_t shape[] = { 2, 3 };
	size_t size = npy_header(head, "<i2", 2, shape);
	struct npy npy;

	CHECK(npy_parse_any(head, size, &npy) && !npy.fortran);
	memcpy(strstr(head + 10, "False"), "True ", 5);
	CHECK(npy_parse_any(head, size, &npy) && npy.fortran);
	CHECK(npy.offset == size && npy.shape[1] == 3);
	CHECK(!npy_parse(head, size, &npy));
}

static void written_arrays_are_read_back(void)
{
	const uint64_t shape[] = { 5, 0, 7 };
	char head[NPY_HEADER_MAX];
	size_t size = npy_header(head, "<i2", 3, shape);
	struct npy npy;

	CHECK(npy_parse(head, size, &npy) && npy.offset == size);
	CHECK(!strcmp(npy.dtype, "<i2") && npy.ndim == 3);
	CHECK(!memcmp(npy.shape, shape, sizeof(shape)));
}

int main(void)
{
	npy_headers_are_numpys();
	the_longest_npy_header_fits();
	headers_are_read();
	written_arrays_are_read_back();
	fortran_order_is_read_if_wanted();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/formats/csv.h"
#include "tests/unit/t.h"

static struct file file_of(const char *text, size_t size)
{
	struct file f = { .fd = -1 };

	CHECK(!file_make(&f) && !file_write(&f, text, size, 0));
	f.size = size;
	return f;
}

/* Reads all records of a text, and compares them with `expected`, whose last
   is NULL. Returns the result of the last call. */
static int read_all(const char *text, size_t size, char separator,
		    const char *const *expected)
{
	struct file f = file_of(text, size);
	struct records r = { .file = &f, .separator = separator };
	size_t n = 0;
	char *record;
	int status;

	for (; (status = records_next(&r, &record, &n)) > 0; expected++) {
		CHECK(*expected && strlen(*expected) == n);
		CHECK(!memcmp(record, *expected, n) && !record[n]);
	}
	CHECK(!*expected);
	records_fini(&r);
	file_close(&f);
	return status;
}

#define READ(text, separator, ...)                                             \
	read_all(text, sizeof(text) - 1, separator,                            \
		 (const char *const[]){ __VA_ARGS__, NULL })

static void test_records(void)
{
	CHECK(READ("", '\0', NULL) == 0);
	CHECK(READ("a\n\nb\r\nc", '\0', "a", "", "b", "c") == 0);
	CHECK(READ("\"a\nb\"\n", '\0', "\"a", "b\"") == 0);
	CHECK(READ("\"a\nb\"\nc\n", ',', "\"a\nb\"", "c") == 0);
	CHECK(READ("x,\"a\r\n\"\"\n\",y\r\nc", ',', "x,\"a\r\n\"\"\n\",y",
		   "c") == 0);
	/* A quote that does not begin a cell is a character. */
	CHECK(READ("a\"b\nc\n", ',', "a\"b", "c") == 0);
	CHECK(READ("a,\"b\nc\n", '\t', "a,\"b", "c") == 0);
	CHECK(READ("a\n\"b\nc\n", ',', "a") == -EBADMSG);
}

/* Records that do not fit into the first piece. */
static void test_long_records(void)
{
	size_t size = (size_t)3 << 20;
	char *text = malloc(2 * size + 1);
	struct records r = { .separator = ',' };
	struct file f;
	char *record;
	size_t n;

	CHECK(text);
	memset(text, 'x', 2 * size);
	text[0] = text[size - 2] = '"';
	text[size / 2] = text[size - 1] = '\n';
	f = file_of(text, 2 * size);
	r.file = &f;
	CHECK(records_next(&r, &record, &n) == 1 && n == size - 1);
	CHECK(r.off == 0 && r.at_line == 1);
	CHECK(records_next(&r, &record, &n) == 1 && n == size);
	CHECK(r.off == size && r.at_line == 3);
	CHECK(records_next(&r, &record, &n) == 0);
	records_fini(&r);
	file_close(&f);
	free(text);
}

static void test_limit(void)
{
	char *text = malloc(RECORD_MAX + 2);
	struct records r = { .separator = '\0' };
	struct file f;
	char *record;
	size_t n;

	CHECK(text);
	memset(text, 'x', RECORD_MAX + 2);
	f = file_of(text, RECORD_MAX + 2);
	r.file = &f;
	CHECK(records_next(&r, &record, &n) == -EFBIG);
	records_fini(&r);
	file_close(&f);
	free(text);
}

static void check_cells(const char *text, size_t num,
			const char *const *expected)
{
	struct csv_cell cells[8] = { { 0 } };
	char copy[64];

	memset(copy, 'z', sizeof(copy));
	CHECK(strlen(text) < sizeof(copy));
	memcpy(copy, text, strlen(text) + 1);
	CHECK(csv_split(copy, strlen(text), ',', cells, 8) == num);
	for (size_t i = 0; i < num; i++) {
		CHECK(!strcmp(cells[i].text, expected[i]));
		CHECK(cells[i].size == strlen(expected[i]));
	}
}

#define CELLS(text, num, ...)                                                  \
	check_cells(text, num, (const char *const[]){ __VA_ARGS__ })

static void test_cells(void)
{
	struct csv_cell one;
	char many[] = "a,b,c";

	CELLS("", 1, "");
	CELLS("a", 1, "a");
	CELLS(",", 2, "", "");
	CELLS("a,,c,", 4, "a", "", "c", "");
	CELLS("\"a,b\",c", 2, "a,b", "c");
	CELLS("\"\"", 1, "");
	CELLS("\"\"\"\"", 1, "\"");
	CELLS("\"a\"\"b\",\"\"", 2, "a\"b", "");
	CELLS("a\"b\",c", 2, "a\"b\"", "c");
	CELLS("\"a\"b,c", 0, NULL);
	CHECK(csv_split(many, 5, ',', &one, 1) == 3 && !strcmp(one.text, "a"));
}

static void test_find(void)
{
	char text[] = "\"a\n\"\n\n\nb";

	CHECK(record_find(text, 8, ',') == 4 && !strcmp(text, "\"a\n\""));
	strcpy(text, "\"a\nb");
	CHECK(record_find(text, 4, '\0') == 2 && !strcmp(text, "\"a"));
}

int main(void)
{
	test_records();
	test_long_records();
	test_limit();
	test_cells();
	test_find();
	return 0;
}

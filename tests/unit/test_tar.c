/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/formats/tar.h"
#include "tests/unit/t.h"

/* An archive in memory, of headers and data. */
static uint8_t bytes[64 * TAR_BLOCK];
static size_t used;

static void put_sum(uint8_t *block)
{
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	snprintf((char *)block + 148, 8, "%06o", sum);
}

/* Adds a header; returns it, for changes that put_sum() follows. */
static uint8_t *add(const char *name, char type, size_t size)
{
	uint8_t *block = bytes + used;

	memset(block, 0, TAR_BLOCK);
	strncpy((char *)block, name, 100);
	snprintf((char *)block + 124, 12, "%011o", (unsigned)size);
	block[156] = (uint8_t)type;
	memcpy(block + 257, "ustar", 6);
	put_sum(block);
	used += TAR_BLOCK;
	return block;
}

static void add_data(const char *text)
{
	memset(bytes + used, 0, TAR_BLOCK);
	strcpy((char *)bytes + used, text);
	used += TAR_BLOCK;
}

/* Reads the archive up to its end or an error, and returns that. The last file
   is in *last. */
static int read_all(struct tar *t, struct tar_file *last, unsigned *num)
{
	struct file f = { .fd = -1 };
	int r;

	CHECK(!file_make(&f) && !file_write(&f, bytes, used, 0));
	f.size = used;
	*t = (struct tar){ .window.file = &f };
	for (*num = 0; (r = tar_next(t, last)) > 0;)
		++*num;
	file_close(&f);
	t->window.file = NULL;
	return r;
}

static void test_files(void)
{
	struct tar_file file;
	unsigned num;
	struct tar t;

	used = 0;
	add("d/", '5', 0);
	add("old/", '\0', 0);
	add("a", '0', 3);
	add_data("abc");
	add("link", '2', 7); /* has no data, whatever its size */
	strcpy((char *)add("b", '7', 0) + 345, "some/where");
	put_sum(bytes + used - TAR_BLOCK);
	CHECK(read_all(&t, &file, &num) == 0 && num == 2 && t.no_end);
	CHECK(!strcmp(file.name, "some/where/b") && !file.size);
	CHECK(t.skipped == 3 && file.off == used);
	memset(bytes + used, 0, TAR_BLOCK);
	used += TAR_BLOCK;
	add("behind the end", '0', 0);
	CHECK(read_all(&t, &file, &num) == 0 && num == 2 && !t.no_end);
}

static void test_sizes(void)
{
	struct tar_file file;
	uint8_t *block;
	unsigned num;
	struct tar t;

	used = 0;
	block = add("a", '0', 0);
	memset(block + 124, 0, 12);
	block[124] = 0x80; /* base 256 */
	block[135] = 5;
	put_sum(block);
	add_data("12345");
	CHECK(read_all(&t, &file, &num) == 0 && num == 1 && file.size == 5);
	block[126] = 1; /* more than 64 bits */
	put_sum(block);
	CHECK(read_all(&t, &file, &num) == -EBADMSG && t.why[0]);
	block[126] = 0;
	block[129] = 1; /* more than the archive has */
	put_sum(block);
	CHECK(read_all(&t, &file, &num) == -EBADMSG && t.why[0]);
	memcpy(block + 124, "9", 2);
	put_sum(block);
	CHECK(read_all(&t, &file, &num) == -EBADMSG && t.why[0]);
}

static int read_pax(const char *text, struct tar_file *file)
{
	unsigned num;
	struct tar t;
	int r;

	used = 0;
	add("PaxHeader", 'x', strlen(text));
	add_data(text);
	add("short", '0', 1);
	add_data("xy");
	r = read_all(&t, file, &num);
	CHECK(r ? t.why[0] : num == 1);
	return r;
}

static void test_extended_headers(void)
{
	struct tar_file file;
	unsigned num;
	struct tar t;

	CHECK(read_pax("15 path=a/long\n10 size=2\n", &file) == 0);
	CHECK(!strcmp(file.name, "a/long") && file.size == 2);
	CHECK(read_pax("19 mtime=12345.678\n", &file) == 0);
	CHECK(!strcmp(file.name, "short") && file.size == 1);
	CHECK(read_pax("15 path=a/longX", &file) == -EBADMSG);
	CHECK(read_pax("99 path=a/long\n", &file) == -EBADMSG);
	CHECK(read_pax("3 x\n", &file) == -EBADMSG);
	CHECK(read_pax("8 nokey\n", &file) == -EBADMSG);
	CHECK(read_pax("12 size=-1x\n", &file) == -EBADMSG);
	CHECK(read_pax("11 size=2x\n", &file) == -EBADMSG);
	CHECK(read_pax("22 GNU.sparse.major=1\n", &file) == -ENOTSUP);
	used = 0;
	add("x", 'L', 4);
	add_data("long");
	add("x", 'K', 4);
	add_data("link");
	add("short", '0', 0);
	CHECK(read_all(&t, &file, &num) == 0 && !strcmp(file.name, "long"));
	add("sparse", 'S', 0);
	CHECK(read_all(&t, &file, &num) == -ENOTSUP && num == 1);
}

static void test_damage(void)
{
	struct tar_file file;
	unsigned num;
	struct tar t;

	used = 0;
	add("a", '0', 0);
	add("b", '0', 0);
	bytes[TAR_BLOCK] ^= 1;
	CHECK(read_all(&t, &file, &num) == -EBADMSG && num == 1);
	CHECK(strstr(t.why, "512"));
	used = TAR_BLOCK + 100;
	CHECK(read_all(&t, &file, &num) == -EBADMSG && num == 1);
	used = 0;
	CHECK(read_all(&t, &file, &num) == 0 && num == 0);
}

int main(void)
{
	test_files();
	test_sizes();
	test_extended_headers();
	test_damage();
	return 0;
}

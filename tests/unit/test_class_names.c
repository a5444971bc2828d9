/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/class_names.h"
#include "tests/unit/t.h"

/* Splits a copy of so many bytes. */
static struct class_names *split(const char *text, uint64_t size, uint64_t num)
{
	const struct class_names_place place = { .size = size, .num = num };
	struct class_names *c = NULL;
	char *copy = malloc(size);

	CHECK(copy);
	memcpy(copy, text, size);
	CHECK(class_names_split(copy, &place, &c) == (c != NULL));
	return c;
}

static void test_names_come_back(void)
{
	static const char *const names[] = { "cat", "Déjà vu", "a/b", "日本" };
	struct class_names *c;
	uint64_t size;
	char *text = class_names_join(names, ARRAY_LEN(names), &size);

	c = split(text, size, ARRAY_LEN(names));
	CHECK(c && c->num == ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(!strcmp(class_name(c, (int64_t)i), names[i]));
	CHECK(!class_name(c, -1) && !class_name(c, 4) && !class_name(NULL, 0));
	class_names_free(c);
	free(text);
}

/* Names of directories are any bytes; the test expects printable names. */
static void test_unprintable_characters_become_question_marks(void)
{
	static const struct {
		const char *name, *shown;
	} rows[] = {
		{ "", "?" },
		{ "a\nb", "a?b" },
		{ "\x1b[2J", "?[2J" },
		{ "\x7f", "?" },
		{ "\xff\xfe", "??" },
		{ "\xc0\xaf", "??" },		/* a long form of '/' */
		{ "\xed\xa0\x80", "???" },	/* a surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* past the last one */
		{ "\xc2\x9b", "??" },		/* a control of Latin-1 */
		{ "\xe6\x97", "??" },		/* cut */
		{ "x\xf0\x9f\x98\x80", "x\xf0\x9f\x98\x80" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct class_names *c;
		uint64_t size;
		char *text = class_names_join(&rows[i].name, 1, &size);

		CHECK(text && size == strlen(rows[i].shown) + 1);
		CHECK(!strcmp(text, rows[i].shown));
		c = split(text, size, 1);
		CHECK(c);
		class_names_free(c);
		free(text);
	}
}

static void test_damaged_names_are_refused(void)
{
	CHECK(!split("a\0b\0", 4, 0));
	CHECK(!split("a\0b\0", 4, 1));
	CHECK(!split("a\0b\0", 4, 3));
	CHECK(!split("a\0b\0", 3, 2));
	CHECK(!split("a\0bc", 4, 2));
	CHECK(!split("\0\0a\0", 4, 2));
	CHECK(!split("a\n\0b\0", 5, 2));
	CHECK(!split("\xff\0", 2, 1));
	CHECK(!split("a\0", 2, UINT64_MAX));
	CHECK(!split("\xf0\0", 2, 1));
}

static void test_a_place_comes_back(void)
{
	const struct class_names_place place = { 1, UINT64_MAX, 3 };
	uint8_t args[CLASS_NAMES_ARGS_SIZE] = { 0 };
	struct class_names_place got = class_names_parse(args);

	CHECK(!got.size);
	class_names_put(&place, args);
	got = class_names_parse(args);
	CHECK(!memcmp(&got, &place, sizeof(got)));
}

int main(void)
{
	test_names_come_back();
	test_unprintable_characters_become_question_marks();
	test_damaged_names_are_refused();
	test_a_place_comes_back();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/typed.h"
#include "tests/unit/t.h"

static const struct {
	const char *text;
	uint64_t size;
} sizes[] = {
	{ "0", 0 },
	{ "00", 0 },
	{ "4096", 4096 },
	{ "0512", 512 },
	{ "1K", 1 << 10 },
	{ "1k", 1 << 10 },
	{ "3KiB", 3 << 10 },
	{ "512M", 512 << 20 },
	{ "512MiB", 512 << 20 },
	{ "2g", (uint64_t)2 << 30 },
	{ "2GiB", (uint64_t)2 << 30 },
	{ "5T", (uint64_t)5 << 40 },
	{ "5TiB", (uint64_t)5 << 40 },
	/* The largest of each unit. */
	{ "18446744073709551615", UINT64_MAX },
	{ "18014398509481983K", UINT64_MAX - 1023 },
	{ "17592186044415M", UINT64_MAX - ((uint64_t)1 << 20) + 1 },
	{ "17179869183G", UINT64_MAX - ((uint64_t)1 << 30) + 1 },
	{ "16777215TiB", UINT64_MAX - ((uint64_t)1 << 40) + 1 },
};

static const char *const wrong[] = {
	"",
	" ",
	"K",
	"KiB",
	"-1",
	"+1",
	" 1",
	"1 ",
	"1 K",
	"1B",
	"1KB",
	"1Ki",
	"1iB",
	"1KIB",
	"1kib",
	"1KiBs",
	"1KK",
	"1P",
	"1E",
	"1.5G",
	"0x10",
	"1e3",
	"1,024",
	"\xd9\xa1",
	"1\xc2\xa0",
	"1K\n",
	"max",
	/* One more than the largest, and what wraps to something small. */
	"18446744073709551616",
	"18446744073709551625",
	"184467440737095516150",
	"99999999999999999999999999999999",
	"18014398509481984K",
	"17592186044416MiB",
	"17179869184G",
	"16777216T",
	"16777217TiB",
};

static const struct typed any_number = { TYPED_NUMBER, .max = UINT64_MAX };
static const struct typed any_size = { TYPED_SIZE, .max = UINT64_MAX };
static const struct typed octal = { TYPED_OCTAL, .max = 0777 };
static const struct typed exact = { TYPED_NUMBER, .max = UINT64_MAX,
				    .strict = true };
static const struct typed exact_size = { TYPED_SIZE, .min = 1,
					 .max = UINT64_MAX, .strict = true };
static const struct typed colors = { TYPED_WORD,
				     .words = "red|reddish|re|green" };

/* 0: refused, and then nothing was written. Else 1 + the value. */
static uint64_t parsed(const struct typed *type, const char *text)
{
	uint64_t v = 77;

	if (typed_parse_string(type, text, &v))
		return 1 + v;
	CHECK(v == 77);
	return 0;
}

static void sizes_have_units(void)
{
	uint64_t size;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size = 1;
		CHECK(typed_parse_string(&any_size, sizes[i].text, &size));
		CHECK(size == sizes[i].size);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK(!parsed(&any_size, wrong[i]));
}

static void numbers_are_digits(void)
{
	static const char *const bad[] = {
		"",
		" ",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1k",
		"1KiB",
		"0x10",
		"1e3",
		"1.0",
		"18446744073709551616",
		"1\n",
		"a",
		"/",
		":",
		"99999999999999999999999",
	};
	uint64_t v;

	CHECK(parsed(&any_number, "0") == 1);
	CHECK(parsed(&any_number, "007") == 8);
	CHECK(parsed(&any_number, "00000000000000000000000000001") == 2);
	CHECK(typed_parse_string(&any_number, "18446744073709551615", &v));
	CHECK(v == UINT64_MAX);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(!parsed(&any_number, bad[i]));
		CHECK(!parsed(&exact, bad[i]));
		CHECK(!parsed(&octal, bad[i]));
	}
}

static void limits_are_inclusive(void)
{
	const struct typed few = { TYPED_NUMBER, .min = 2, .max = 9 };
	const struct typed some = { TYPED_SIZE, .min = 1024, .max = 4096 };

	CHECK(parsed(&few, "2") == 3 && parsed(&few, "9") == 10);
	CHECK(!parsed(&few, "1") && !parsed(&few, "10"));
	CHECK(parsed(&some, "1K") == 1025 && parsed(&some, "4KiB") == 4097);
	CHECK(!parsed(&some, "1023") && !parsed(&some, "4097"));
}

static void octal_digits_end_at_7(void)
{
	CHECK(parsed(&octal, "0") == 1 && parsed(&octal, "27") == 1 + 027);
	CHECK(parsed(&octal, "0777") == 1 + 0777);
	CHECK(!parsed(&octal, "8") && !parsed(&octal, "08"));
	CHECK(!parsed(&octal, "1000") && !parsed(&octal, "0o17"));
	/* 2^64 in octal. */
	CHECK(!parsed(&octal, "2000000000000000000000"));
}

static void strict_texts_have_one_spelling(void)
{
	CHECK(parsed(&exact, "0") == 1 && parsed(&exact, "70") == 71);
	CHECK(!parsed(&exact, "00") && !parsed(&exact, "07"));
	CHECK(parsed(&exact_size, "3KiB") == 3073);
	CHECK(parsed(&exact_size, "512") == 513);
	CHECK(!parsed(&exact_size, "3K") && !parsed(&exact_size, "3kiB"));
	CHECK(!parsed(&exact_size, "03KiB") && !parsed(&exact_size, "0KiB"));
	CHECK(!parsed(&exact_size, "KiB") && !parsed(&exact_size, "1KiBB"));
	CHECK(!parsed(&exact_size, "18014398509481984KiB"));
	CHECK(!parsed(&exact_size, "16777216TiB"));
}

static const char *letter_at(size_t i)
{
	static const char *const letters[] = { "a", "ab", "b" };

	return i < ARRAY_LEN(letters) ? letters[i] : NULL;
}

static void words_are_whole(void)
{
	const struct typed letters = { TYPED_WORD, .word_at = letter_at };

	CHECK(parsed(&colors, "red") == 1 && parsed(&colors, "reddish") == 2);
	CHECK(parsed(&colors, "re") == 3 && parsed(&colors, "green") == 4);
	CHECK(!parsed(&colors, "") && !parsed(&colors, "r"));
	CHECK(!parsed(&colors, "redd") && !parsed(&colors, "greens"));
	CHECK(!parsed(&colors, "Red") && !parsed(&colors, "red "));
	CHECK(!parsed(&colors, "red|reddish") && !parsed(&colors, "|"));
	CHECK(parsed(&letters, "ab") == 2 && parsed(&letters, "b") == 3);
	CHECK(!parsed(&letters, "") && !parsed(&letters, "c"));
}

static void texts_need_no_end(void)
{
	uint64_t v = 77;

	CHECK(typed_parse(&any_number, "123,4", 3, &v) && v == 123);
	CHECK(typed_parse(&any_size, "2Kx", 2, &v) && v == 2048);
	CHECK(typed_parse(&any_size, "1KiB", 2, &v) && v == 1024);
	CHECK(typed_parse(&colors, "reddish", 3, &v) && v == 0);
	v = 77;
	CHECK(!typed_parse(&any_number, "123", 0, &v));
	CHECK(!typed_parse(&any_number, "1\0002", 3, &v));
	CHECK(!typed_parse(&any_size, "1K\0iB", 4, &v));
	CHECK(!typed_parse(&colors, "red\0", 4, &v) && v == 77);
}

static void times_have_units(void)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} good[] = { { "0", 0 },
		     { "90", 90 },
		     { "90s", 90 },
		     { "5m", 300 },
		     { "1h", 3600 } };
	static const char *const bad[] = {
		"",    "s",    "5M", "5 m", "1d",
		"5ms", "1.5m", "-1", "2h",  "18446744073709551615m"
	};
	const struct typed type = { TYPED_TIME, .max = 3600 };
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(typed_parse_string(&type, good[i].text, &v));
		CHECK(v == good[i].seconds);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!typed_parse_string(&type, bad[i], &v));
}

static const char *expected(struct typed type)
{
	static char text[TYPED_EXPECTED_SIZE];

	return typed_expected(&type, text);
}

#define EXPECTED(text, ...)                                                    \
	CHECK(!strcmp(expected((struct typed){ __VA_ARGS__ }), text))

static void descriptions_have_one_wording(void)
{
	char long_words[3 * TYPED_EXPECTED_SIZE];

	EXPECTED("a whole number from 1 to 8", TYPED_NUMBER, .min = 1,
		 .max = 8);
	EXPECTED("a whole number of at least 1", TYPED_NUMBER, .min = 1,
		 .max = UINT64_MAX);
	EXPECTED("a whole number below 2^64", TYPED_NUMBER, .max = UINT64_MAX);
	EXPECTED("0 or 1", TYPED_NUMBER, .max = 1);
	EXPECTED("an octal number up to 0777", TYPED_OCTAL, .max = 0777);
	EXPECTED("a size from 16MiB, such as 512MiB", TYPED_SIZE,
		 .min = 16 << 20, .max = UINT64_MAX - 1);
	EXPECTED("a size above 0, such as 512MiB", TYPED_SIZE, .min = 1,
		 .max = UINT64_MAX);
	EXPECTED("a size, such as 512MiB", TYPED_SIZE, .max = UINT64_MAX);
	EXPECTED("a size from 1025 to 64TiB", TYPED_SIZE, .min = 1025,
		 .max = (uint64_t)1 << 46);
	EXPECTED("a size from 0 to 2048TiB", TYPED_SIZE,
		 .max = (uint64_t)1 << 51);
	EXPECTED("a time from 0s to 168h", TYPED_TIME, .max = 7 * 24 * 3600);
	EXPECTED("a time from 90s to 5m", TYPED_TIME, .min = 90, .max = 300);
	EXPECTED("one of auto, os, process", TYPED_WORD,
		 .words = "auto|os|process");
	EXPECTED("one of a, ab, b", TYPED_WORD, .word_at = letter_at);
	EXPECTED("draft", TYPED_WORD, .words = "draft");
	/* A list that is too long is cut off. */
	memset(long_words, 'x', sizeof(long_words));
	long_words[100] = long_words[300] = '|';
	long_words[sizeof(long_words) - 1] = '\0';
	CHECK(strlen(expected(
		      (struct typed){ TYPED_WORD, .words = long_words })) ==
	      TYPED_EXPECTED_SIZE - 1);
}

int main(void)
{
	sizes_have_units();
	numbers_are_digits();
	limits_are_inclusive();
	times_have_units();
	octal_digits_end_at_7();
	strict_texts_have_one_spelling();
	words_are_whole();
	texts_need_no_end();
	descriptions_have_one_wording();
	return 0;
}

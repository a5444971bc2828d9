/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/utf8.h"
#include "loader/tools/input/convert.h"
#include "tests/unit/t.h"

static bool is_int(const char *text, int64_t expected)
{
	int64_t v = -77;

	return convert_int(text, strlen(text), &v) && v == expected;
}

static bool is_float(const char *text, double expected)
{
	double v = -77;

	return convert_float(text, strlen(text), &v) &&
	       (isnan(expected) ? isnan(v) : v == expected);
}

static void test_integers(void)
{
	static const char *const bad[] = { "",
					   "+",
					   "-",
					   " 1",
					   "1 ",
					   "x",
					   "1.",
					   "--1",
					   "9223372036854775808",
					   "-9223372036854775809",
					   "99999999999999999999" };
	int64_t v;

	CHECK(is_int("0", 0) && is_int("-0", 0) && is_int("+12", 12));
	CHECK(is_int("9223372036854775807", INT64_MAX));
	CHECK(is_int("-9223372036854775808", INT64_MIN));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!convert_int(bad[i], strlen(bad[i]), &v));
}

static void test_floats(void)
{
	static const char *const bad[] = {
		"",	".",	 "1e", "0x1p3", "1 ",
		"nano", "infin", "e5", "1,5",	"--1"
	};
	char many[500];
	double v;

	CHECK(is_float("1.5", 1.5) && is_float("-.5", -.5));
	CHECK(is_float("5.", 5) && is_float("+1e-3", 1e-3));
	CHECK(is_float("NaN", (double)NAN) && is_float("-inf", -HUGE_VAL));
	CHECK(is_float("Infinity", HUGE_VAL));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!convert_float(bad[i], strlen(bad[i]), &v));
	memset(many, '1', sizeof(many));
	CHECK(!convert_float(many, sizeof(many), &v));
}

static bool is_image(const char *bytes, size_t size)
{
	return convert_is_image((const uint8_t *)bytes, size);
}

static void test_kinds(void)
{
	CHECK(is_image("\xff\xd8\xff\xe0", 4) && !is_image("\xff\xd8", 2));
	CHECK(is_image("RIFF....WEBPVP8 ", 16) && is_image("GIF89a", 6));
	CHECK(is_image("\0\0\0\x1c"
		       "ftypavif",
		       12) &&
	      !is_image("", 0));
	CHECK(convert_is_json("[1]", 3) && convert_is_json("null", 4));
	CHECK(!convert_is_json("[1", 2) && !convert_is_json("1 2", 3));
}

static void test_utf8(void)
{
	char out[4];

	CHECK(utf8_put('a', out) == 1 && utf8_put(0xe9, out) == 2);
	CHECK(utf8_put(0x20ac, out) == 3 && !memcmp(out, "\xe2\x82\xac", 3));
	CHECK(utf8_put(0x1f600, out) == 4 && utf8_is_text(out, 4));
	CHECK(!utf8_put(0xd800, out) && !utf8_put(0x110000, out));
	CHECK(utf8_is_text("", 0) && utf8_is_text("a\n\xc3\xa9", 4));
	CHECK(!utf8_is_text("a\0b", 3) && !utf8_is_text("\xc3", 1));
	CHECK(!utf8_is_text("\xed\xa0\x80", 3) && !utf8_is_text("\xff", 1));
}

int main(void)
{
	const char *text = " \ta b\r\n";
	size_t size = 7;

	convert_strip(&text, &size);
	CHECK(size == 3 && !strncmp(text, "a b", 3));
	test_integers();
	test_floats();
	test_kinds();
	test_utf8();
	return 0;
}

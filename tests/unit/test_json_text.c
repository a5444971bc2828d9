/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/fsck/json_text.h"
#include "tests/unit/t.h"

static bool is_json(const char *text)
{
	size_t at, size = strlen(text);
	/* Without the NUL, for the sanitizer. */
	char *copy = malloc(size + !size);
	const char *why;

	CHECK(copy);
	memcpy(copy, text, size);
	why = json_text_check(copy, size, &at);
	CHECK(at <= size);
	free(copy);
	return !why;
}

static void python_writes_such_texts(void)
{
	static const char *const texts[] = {
		"0",
		"-1.5e+30",
		"1e-7",
		"\"\"",
		"\"a\\u00e4\\n\\\"\"",
		"\"\xc3\xa4\"",
		"\"\\ud800\"",
		"[]",
		"{}",
		" [ 1 , 2 ] ",
		"{\"a\": {\"b\": [[], {}, null]}, \"a\": 1}",
		"[true, false, null, NaN, Infinity, -Infinity]",
		"123456789012345678901234567890",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CHECK(is_json(texts[i]));
}

static void other_texts_are_refused(void)
{
	static const char *const texts[] = {
		"",	      " ",	   "[",		"]",
		"[1",	      "[1,",	   "[1,]",	"[1 2]",
		"{",	      "{\"a\"",	   "{\"a\":",	"{\"a\":}",
		"{\"a\":1,}", "{1:2}",	   "{\"a\":1]", "[1}",
		"1 2",	      "01",	   "-",		"1.",
		".5",	      "1e",	   "+1",	"\"",
		"\"\\",	      "\"\\x\"",   "\"\\u12\"", "\"\\u12g4\"",
		"\"\n\"",     "'a'",	   "tru",	"nul",
		"-NaN",	      "\"\xff\"",  "\"\xc3\"",	"\"\xc0\x80\"",
		"[1]x",	      "undefined",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CHECK(!is_json(texts[i]));
	/* A character that is too long, and half of a pair. */
	CHECK(!is_json("\"\xe0\x80\x80\"") && !is_json("\"\xed\xa0\x80\""));
}

static void depth_has_a_limit(void)
{
	static char text[2 * JSON_TEXT_DEPTH + 8];
	size_t n = JSON_TEXT_DEPTH;

	memset(text, '[', n);
	text[n] = '1';
	memset(text + n + 1, ']', n);
	CHECK(is_json(text));
	memset(text, '[', n + 1);
	text[n + 1] = '1';
	memset(text + n + 2, ']', n + 1);
	CHECK(!is_json(text));
}

int main(void)
{
	python_writes_such_texts();
	other_texts_are_refused();
	depth_has_a_limit();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "loader/tools/ui/paragraph.h"
#include "tests/unit/t.h"

static char text[1024];

static const char *printed(const char *left, const char *right)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	CHECK(f);
	paragraph_print(f, left, right);
	fclose(f);
	return text;
}

static void test_a_short_left_side_shares_the_line(void)
{
	CHECK(!strcmp(printed("  -q", "Print"),
		      "  -q                      Print\n"));
}

static void test_a_long_left_side_has_a_line(void)
{
	CHECK(!strcmp(printed("  --a-very-long-option=x", "Print"),
		      "  --a-very-long-option=x  Print\n"));
	CHECK(!strcmp(printed("  --a-very-long-option=xy", "Print"),
		      "  --a-very-long-option=xy\n"
		      "                          Print\n"));
}

static void test_lines_have_at_most_79_columns(void)
{
	const char *line = printed(
		"x", "one two three four five six seven eight nine ten eleven "
		     "twelve thirteen fourteen fifteen sixteen seventeen");
	size_t longest = 0;

	for (; *line; line += strcspn(line, "\n") + 1) {
		size_t n = strcspn(line, "\n");

		longest = n > longest ? n : longest;
		CHECK(line == text ||
		      !strncmp(line, "                      ", 22));
	}
	CHECK(longest <= 79 && longest > 70);
}

static void test_a_default_is_not_split(void)
{
	/* "(default:" alone would end at column 79. */
	CHECK(strstr(printed("x", "1234567 1234567 1234567 1234567 1234567 abc "
				  "(default: 10)"),
		     "abc\n                          (default: 10)\n"));
}

int main(void)
{
	test_a_short_left_side_shares_the_line();
	test_a_long_left_side_has_a_line();
	test_lines_have_at_most_79_columns();
	test_a_default_is_not_split();
	return 0;
}

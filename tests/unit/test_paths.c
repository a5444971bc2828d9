/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/files/paths.h"

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "tests/unit/t.h"

static char folder[] = "/tmp/test_paths.XXXXXX";
static char message[512];
static struct log heard;

static void hear(void *arg, enum beton_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(message, sizeof(message), "%s", text);
}

static void make_file(const char *name)
{
	FILE *f = fopen(name, "we");

	CHECK(f && !fclose(f));
}

/* Whether the text lists these files, each followed by a newline. */
static bool lists(const char *text, const char *expected)
{
	char got[4096] = "";
	struct paths paths;

	CHECK(!paths_list(text, &heard, &paths));
	for (size_t i = 0; i < paths.num; i++) {
		strcat(got, paths.at[i]);
		strcat(got, "\n");
	}
	paths_fini(&paths);
	if (strcmp(got, expected))
		fprintf(stderr, "%s lists\n%s", text, got);
	return !strcmp(got, expected);
}

static int fails(const char *text, const char *word)
{
	struct paths paths;
	int r;

	message[0] = '\0';
	r = paths_list(text, &heard, &paths);
	paths_fini(&paths);
	CHECK(strstr(message, word));
	return r;
}

static void a_path_is_itself(void)
{
	CHECK(!paths_is_pattern("a") && !paths_is_pattern("a\\b,c}"));
	CHECK(lists("none", "none\n") && lists("", "\n"));
	make_file("x*");
	make_file("{a,b}");
	CHECK(lists("x*", "x*\n") && lists("{a,b}", "{a,b}\n"));
	CHECK(!unlink("x*") && !unlink("{a,b}"));
	CHECK(paths_is_pattern("x*") && paths_is_pattern("{a,b}"));
}

static void braces_are_alternatives_in_order(void)
{
	static const char *const table[][2] = {
		{ "{b,a}", "b\na\n" },
		{ "p{1,2}s", "p1s\np2s\n" },
		{ "{a,b}{1,2}", "a1\na2\nb1\nb2\n" },
		{ "{x{1,2},y}", "x1\nx2\ny\n" },
		{ "{,a}", "\na\n" },
		{ "{a}", "{a}\n" },
		{ "{}", "{}\n" },
		{ "{a,b", "{a,b\n" },
		{ "{a{b,c}", "{ab\n{ac\n" },
		{ "{a\\,b,c}", "a,b\nc\n" },
		{ "{\\{a\\},c\\}}", "{a}\nc}\n" },
		{ "{a\\\\,c}", "a\\\nc\n" },
		{ "\\{a,b}[", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i][1])
			CHECK(lists(table[i][0], table[i][1]));
		else
			CHECK(fails(table[i][0], "no file") == -ENOENT);
	}
}

static void wildcards_match_names_by_their_bytes(void)
{
	static const char *const names[] = { "d/b1", "d/B2", "d/a,3", "d/b10" };

	CHECK(!mkdir("d", 0700));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		make_file(names[i]);
	setlocale(LC_ALL, "");
	CHECK(lists("d/*", "d/B2\nd/a,3\nd/b1\nd/b10\n"));
	CHECK(lists("{d/b?,d/[Ba]*}", "d/b1\nd/B2\nd/a,3\n"));
	CHECK(lists("{d/a\\,?,none}", "d/a,3\nnone\n"));
	CHECK(fails("d/c*", "d/c*: no file matches") == -ENOENT);
	CHECK(fails("{d/b1,d/c*}", "d/c*: no file matches") == -ENOENT);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(!unlink(names[i]));
	CHECK(!rmdir("d"));
}

/* 2^20 alternatives in a hundred bytes, and brackets without an end. */
static void a_text_cannot_exhaust_memory(void)
{
	char text[20 * 5 + 1] = "";
	char deep[1 << 13];

	for (int i = 0; i < 20; i++)
		strcat(text, "{a,b}");
	CHECK(fails(text, "more than 4096 files") == -E2BIG);
	memset(deep, '{', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	CHECK(paths_is_pattern("{{{") && lists("{{{", "{{{\n"));
}

static void a_list_is_named_by_a_text(void)
{
	static const char *const names[] = { "a,{1}", "b*\\" };
	struct paths paths;
	char expected[256];
	char *text;

	make_file("a,{1}");
	make_file("b*\\");
	CHECK(!paths_list("{a\\,\\{1\\},b\\*\\\\}", &heard, &paths));
	CHECK(paths.num == 2);
	CHECK(!paths_text(&paths, &text));
	paths_fini(&paths);
	snprintf(expected, sizeof(expected), "%s/%s\n%s/%s\n", folder, names[0],
		 folder, names[1]);
	CHECK(text && lists(text, expected));
	free(text);
	CHECK(!unlink(names[0]) && !unlink(names[1]));
	CHECK(!paths_list("{a,b}", &heard, &paths));
	CHECK(paths_text(&paths, &text) == -ENOENT);
	paths_fini(&paths);
}

int main(void)
{
	CHECK(mkdtemp(folder) && !chdir(folder));
	log_init(&heard, hear, NULL);
	a_path_is_itself();
	braces_are_alternatives_in_order();
	wildcards_match_names_by_their_bytes();
	a_text_cannot_exhaust_memory();
	a_list_is_named_by_a_text();
	log_fini(&heard);
	CHECK(!rmdir(folder));
	return 0;
}

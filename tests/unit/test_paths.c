/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/paths.h"

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
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

static void ranges_are_numbers(void)
{
	static const char *const table[][2] = {
		{ "s{1..3}", "s1\ns2\ns3\n" },
		{ "s{08..11}", "s08\ns09\ns10\ns11\n" },
		{ "{9..10}x", "9x\n10x\n" },
		{ "{0..1}{a,b}", "0a\n0b\n1a\n1b\n" },
		{ "{{1..2},z}", "1\n2\nz\n" },
		{ "{7..7}", "7\n" },
		{ "{3..1}", "{3..1}\n" },
		{ "{1..}", "{1..}\n" },
		{ "{..2}", "{..2}\n" },
		{ "{1...3}", "{1...3}\n" },
		{ "{a..c}", "{a..c}\n" },
		{ "{1..99999999999}", "{1..99999999999}\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(lists(table[i][0], table[i][1]));
	CHECK(fails("{0..999999999}", "more than 4096 files") == -E2BIG);
	CHECK(fails("{0..4096}", "more than 4096 files") == -E2BIG);
}

static void urls_are_no_paths(void)
{
	static const char *const urls[] = {
		"https://h/a.beton",
		"http://user:pass@h:80/a?X-Amz-Signature=1",
		"s3://bucket/a[0].beton",
		"https://[::1]:8080/a",
		"https://h/{a}",
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		char expected[256];

		CHECK(paths_is_url(urls[i]) && !paths_is_pattern(urls[i]));
		snprintf(expected, sizeof(expected), "%s\n", urls[i]);
		CHECK(lists(urls[i], expected));
	}
	CHECK(!paths_is_url("a/b://c") && !paths_is_url("://c"));
	CHECK(!paths_is_url("1s://c") && !paths_is_url("s3:/c"));
	CHECK(!paths_is_url("") && !paths_is_url("s3:"));
	CHECK(paths_is_pattern("s3://b/{0..1}.beton"));
	CHECK(lists("s3://b/t-{00..02}.beton?v={a,b}",
		    "s3://b/t-00.beton?v=a\ns3://b/t-00.beton?v=b\n"
		    "s3://b/t-01.beton?v=a\ns3://b/t-01.beton?v=b\n"
		    "s3://b/t-02.beton?v=a\ns3://b/t-02.beton?v=b\n"));
	CHECK(lists("{s3://b/x?y,none}", "s3://b/x?y\nnone\n"));
	CHECK(fails("s3://b/*.beton", "a URL has no wildcards") == -EINVAL);
	CHECK(fails("s3://b/{a,*}", "s3://b/*: a URL has no") == -EINVAL);
	CHECK(fails("s3://b/*?secret", "s3://b/*: a URL") == -EINVAL);
}

static void lists_of_urls_have_a_text(void)
{
	char *text;
	struct paths paths;

	CHECK(!paths_list("s3://b/x{0..1}?v=1", &heard, &paths));
	CHECK(!paths_text(&paths, &text));
	paths_fini(&paths);
	CHECK(!strcmp(text, "{s3://b/x0\\?v=1,s3://b/x1\\?v=1}"));
	CHECK(lists(text, "s3://b/x0?v=1\ns3://b/x1?v=1\n"));
	free(text);
}

static void secrets_are_not_public(void)
{
	static const char *const table[][2] = {
		{ "/a/b?c", "/a/b?c" },
		{ "s3://b/x", "s3://b/x" },
		{ "https://u:p@h:1/x?q=1#f", "https://h:1/x" },
		{ "https://u:p@h", "https://h" },
		{ "https://h?q@r", "https://h" },
		{ "https://h/x@y", "https://h/x@y" },
		{ "https://u:p@w@h/x", "https://h/x" },
		{ "{https://u@h/x\\?q,s3://b/y?z}", "{https://h/x,s3://b/y}" },
		{ "https://u:p@h/{0..1}.beton?q", "https://h/{0..1}.beton" },
		{ "https://h/x?a,b=1}", "https://h/x" },
		{ "{https://h/{a,b}?q,c}", "{https://h/{a,b},c}" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *text = paths_public(table[i][0]);

		if (strcmp(text, table[i][1]))
			fprintf(stderr, "%s\n", text);
		CHECK(!strcmp(text, table[i][1]));
		free(text);
	}
}

int main(void)
{
	CHECK(mkdtemp(folder) && !chdir(folder));
	log_init(&heard, hear, NULL);
	ranges_are_numbers();
	urls_are_no_paths();
	lists_of_urls_have_a_text();
	secrets_are_not_public();
	a_path_is_itself();
	braces_are_alternatives_in_order();
	wildcards_match_names_by_their_bytes();
	a_text_cannot_exhaust_memory();
	a_list_is_named_by_a_text();
	log_fini(&heard);
	CHECK(!rmdir(folder));
	return 0;
}

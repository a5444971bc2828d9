/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside is escaped in the page, whatever it contains. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/ui/html.h"
#include "tests/unit/t.h"

#define MISSING "\xef\xbf\xbd"

static const struct {
	const char *text;
	const char *html;
} texts[] = {
	{ "", "" },
	{ "plain, 1 + 2", "plain, 1 + 2" },
	{ "</script><b a=\"1\" b='2'>&amp;",
	  "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;" },
	{ "a\tb\nc\rd\x1b[31m\x7f", "a\tb\nc d [31m " },
	/* Two, three and four bytes, at both ends. */
	{ "\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf" },
	{ "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80",
	  "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80" },
	{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	  "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "\xc2\x9b", " " },
	/* Too long for what they are, surrogates, beyond the last one. */
	{ "\xc0\xbc", MISSING MISSING },
	{ "\xe0\x80\xbc", MISSING MISSING MISSING },
	{ "\xed\xa0\x80", MISSING MISSING MISSING },
	{ "\xf4\x90\x80\x80", MISSING MISSING MISSING MISSING },
	{ "\xff\x80", MISSING MISSING },
	/* Cut short. */
	{ "x\xe2\x82", "x" MISSING MISSING },
	{ "\xc3<", MISSING "&lt;" },
	{ "\xe2\x82<", MISSING MISSING "&lt;" },
};

static void test_text(void)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		/* A block of exactly its size, so that ASan finds reads behind
		   the text. */
		size_t n = strlen(texts[i].text) + 1, size = 0;
		cleanup_free char *exact = malloc(n);
		cleanup_free char *html = NULL;
		FILE *out = open_memstream(&html, &size);

		CHECK(exact && out);
		memcpy(exact, texts[i].text, n);
		html_text(out, exact);
		CHECK(!fclose(out));
		CHECK(!strcmp(html, texts[i].html));
	}
}

static void test_pictures(void)
{
	const struct html_bar bars[] = {
		html_bar("<b>", 2, false, "%d of %s", 2, "4 & 5"),
		html_bar("most", 8, true, "8"),
		html_bar("less than none", -1, false, "-1"),
	};
	cleanup_free char *html = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&html, &size);

	html_bars(out, "bars \"x\"", bars, ARRAY_LEN(bars));
	html_bars(out, "none", bars, 0);
	CHECK(!fclose(out));
	CHECK(strstr(html, "aria-label=\"bars &quot;x&quot;\""));
	CHECK(strstr(html, "&lt;b&gt;") && !strstr(html, "<b>"));
	CHECK(strstr(html, "width:25.0%") && strstr(html, "width:100.0%"));
	CHECK(strstr(html, "width:0.0%") && strstr(html, "2 of 4 &amp; 5"));
}

static void write_number(FILE *out, const void *arg)
{
	fprintf(out, "%d", *(const int *)arg);
}

static void test_page(void)
{
	static const int seven = 7;
	const struct html_part parts[] = {
		{ "text", .text = "<&>" },
		{ "markup", .markup = "<br>" },
		{ "number", .write = write_number },
		{ .name = NULL },
	};
	cleanup_free char *html = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&html, &size);

	html_page(out,
		  &(struct html_page){ "a < b", "b{c:d}\n",
				       "{text}{markup}, {number}{}{tex} }{text",
				       parts, &seven });
	CHECK(!fclose(out));
	CHECK(!strncmp(html, "<!DOCTYPE html>\n", 16));
	CHECK(strstr(html, "<title>a &lt; b</title>"));
	CHECK(strstr(html,
		     "\nb{c:d}\n</style></head><body>\n"
		     "&lt;&amp;&gt;<br>, 7{}{tex} }{text</body></html>\n"));
}

static int write_some(FILE *out, void *arg)
{
	const char *text = arg;

	html_page(out, &(struct html_page){ text, "", "", NULL, NULL });
	return *text == '!' ? -EIO : 0;
}

static int save(const char *path, const char *title)
{
	char text[64];

	snprintf(text, sizeof(text), "%s", title);
	return html_save(path, NULL, write_some, text);
}

static void test_save(void)
{
	char folder[] = "/tmp/test_html.XXXXXX", path[64];
	struct stat before, after;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/page.html", folder);
	CHECK(save(path, "!fails") == -EIO);
	CHECK(stat(path, &before) < 0 && errno == ENOENT);
	CHECK(!save(path, "x < y"));
	CHECK(!stat(path, &before) && before.st_size > 500);
	/* The old file stays until the new one is complete. */
	CHECK(save(path, "!fails") == -EIO);
	CHECK(!stat(path, &after) && after.st_ino == before.st_ino);
	CHECK(!save(path, "longer than before"));
	CHECK(!stat(path, &after) && after.st_ino != before.st_ino);
	CHECK(after.st_size > before.st_size);
	CHECK(save(folder, "x") == -EISDIR);
	CHECK(!unlink(path) && !rmdir(folder));
}

static void test_print(void)
{
	cleanup_free char *html = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&html, &size);

	html_print(out, "<i>%s</i> %s %% %d %u %zu %llu %02x %.2f %g|", "<&>",
		   "%s%n", -7, 4000000000u, (size_t)1 << 40, 1ull << 63, 0xau,
		   2.005, 0.5);
	html_print(out, "%s", "");
	CHECK(!fclose(out));
	CHECK(!strcmp(html, "<i>&lt;&amp;&gt;</i> %s%n % -7 4000000000 "
			    "1099511627776 9223372036854775808 0a 2.00 0.5|"));
}

int main(void)
{
	test_text();
	test_print();
	test_page();
	test_pictures();
	test_save();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of HTTP answers: fields, and hostile values. */
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/source/net/http.h"

#include "tests/unit/t.h"

static struct http_answer parse(const char *const *lines, size_t n)
{
	struct http_answer a = { 0 };

	for (size_t i = 0; i < n; i++)
		http_line(&a, lines[i], strlen(lines[i]));
	return a;
}

#define PARSE(...)                                                             \
	parse((const char *const[]){ __VA_ARGS__ },                            \
	      ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })))

static void test_answer(void)
{
	struct http_answer a = PARSE(
		"HTTP/1.1 206 Partial Content\r\n", "ETag: \"a-1\"\r\n",
		"content-range: bytes 10-19/100\r\n", "Content-Length:10\r\n",
		"x-amz-version-id: v.1_\r\n", "x-goog-generation: 17\r\n",
		"Retry-After: 3\r\n",
		"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "\r\n");

	CHECK(a.status == 206 && !a.malformed);
	CHECK(a.has_range && a.first == 10 && a.last == 19 && a.total == 100);
	CHECK(a.has_length && a.length == 10);
	CHECK(!strcmp(a.etag, "\"a-1\"") && !a.etag_is_weak);
	CHECK(!strcmp(a.version, "v.1_") && a.generation == 17);
	CHECK(a.retry_after == 3 && a.has_modified);
	CHECK(a.modified == 784111777);
	CHECK(!a.is_multipart && !a.is_encoded && !a.has_location);
}

static void test_status(void)
{
	CHECK(PARSE("HTTP/2 200\r\n").status == 200);
	CHECK(PARSE("HTTP/1.1 404").status == 404);
	CHECK(PARSE("HTTP/1.1 \r\n").malformed);
	CHECK(PARSE("HTTP/1.1 99999999999999999999").malformed);
	/* A second status line begins a new answer. */
	CHECK(!PARSE("HTTP/1.1 100 Continue", "ETag: \"x\"", "HTTP/1.1 200 OK")
		       .etag[0]);
}

static bool is_range(const char *text)
{
	struct http_answer a = { 0 };
	bool is = http_parse_range(text, strlen(text), &a);

	CHECK(is == (a.has_range || a.unsatisfied));
	return is;
}

static void test_ranges(void)
{
	struct http_answer a = { 0 };

	CHECK(is_range("bytes 0-0/1") && is_range("bytes 5-6/*"));
	CHECK(is_range("bytes */7") && is_range(" bytes  1-2/3 "));
	CHECK(!is_range("bytes 2-1/3") && !is_range("bytes 0-3/3"));
	CHECK(!is_range("bytes 0-/3") && !is_range("bytes -1/3"));
	CHECK(!is_range("bytes 0-1") && !is_range("bytes 0-1/3x"));
	CHECK(!is_range("items 0-1/3") && !is_range(""));
	CHECK(!is_range("bytes 0-18446744073709551615/*"));
	CHECK(!is_range("bytes 0-18446744073709551616/*"));
	CHECK(!is_range("bytes 0-99999999999999999999/*"));
	CHECK(http_parse_range("bytes 3-4/*", 11, &a));
	CHECK(a.total == HTTP_UNKNOWN);
}

static void test_contradictions(void)
{
	CHECK(PARSE("Content-Length: 3", "Content-Length: 4").malformed);
	CHECK(!PARSE("Content-Length: 3", "Content-Length: 3").malformed);
	CHECK(PARSE("Content-Length: -3").malformed);
	CHECK(PARSE("Content-Length: 3, 3").malformed);
	CHECK(PARSE("Content-Range: bytes 0-1/2", "Content-Range: bytes 0-1/2")
		      .malformed);
	CHECK(PARSE("Content-Range: bytes 1-0/2").malformed);
}

static void test_tags(void)
{
	char line[HTTP_TAG_MAX + 100];
	struct http_answer a = PARSE("ETag: W/\"x\"");

	CHECK(a.etag_is_weak && !strcmp(a.etag, "\"x\""));
	/* Bytes that would split a request of ours. */
	CHECK(!PARSE("ETag: \"a b\"").etag[0]);
	CHECK(!PARSE("ETag: \"a\rX: y\"").etag[0]);
	CHECK(!PARSE("ETag: \"\x80\"").etag[0]);
	CHECK(!PARSE("x-amz-version-id: null").version[0]);
	memset(line, 'x', sizeof(line));
	memcpy(line, "ETag: ", 6);
	a = (struct http_answer){ 0 };
	http_line(&a, line, sizeof(line));
	CHECK(!a.etag[0]);
}

static void test_kinds(void)
{
	CHECK(PARSE("Content-Type: multipart/byteranges; boundary=x")
		      .is_multipart);
	CHECK(PARSE("Content-Type: text/html; charset=utf-8").is_html);
	CHECK(PARSE("Content-Encoding: gzip").is_encoded);
	CHECK(!PARSE("Content-Encoding: identity").is_encoded);
	CHECK(PARSE("Location: /x").has_location);
	CHECK(!PARSE("no colon").malformed && !PARSE(":").malformed);
	CHECK(!PARSE("").status);
}

static bool is_date(const char *text)
{
	time_t at;

	return http_parse_date(text, strlen(text), &at);
}

static void test_dates(void)
{
	CHECK(is_date("Mon, 29 Feb 2024 23:59:60 GMT"));
	CHECK(!is_date("Mon, 29 Feb 2024 24:00:00 GMT"));
	CHECK(!is_date("Mon, 00 Feb 2024 00:00:00 GMT"));
	CHECK(!is_date("Mon, 01 feb 2024 00:00:00 GMT"));
	CHECK(!is_date("Mon, 01 Feb 2024 00:00:00 CET"));
	CHECK(!is_date("Monday, 01-Feb-24 00:00:00 GMT"));
	CHECK(!is_date("Mon, ") && !is_date(""));
}

int main(void)
{
	test_answer();
	test_status();
	test_ranges();
	test_contradictions();
	test_tags();
	test_kinds();
	test_dates();
	return 0;
}

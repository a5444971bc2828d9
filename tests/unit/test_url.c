/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/url.h"

#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

/* The URL of a request, or "!" and the reason; the caller frees it. */
static char *request_of(const char *text, const struct url_place *place)
{
	struct url_request request = { 0 };
	char why[URL_WHY_SIZE] = "";
	struct url url;
	char *out;
	int r = url_parse(text, &url, why);

	if (!r)
		r = url_request(&url, place, &request, why);
	CHECK(!r || (r == -EINVAL && why[0]));
	if (r)
		CHECK(asprintf(&out, "!%s", why) > 0);
	else
		out = strdup(request.url);
	url_request_fini(&request);
	url_fini(&url);
	return out;
}

static void requests(const char *const table[][2], size_t n,
		     const struct url_place *place)
{
	char *got;

	for (size_t i = 0; i < n; i++) {
		got = request_of(table[i][0], place);
		/* Reasons are compared by their beginning. */
		if (strncmp(got, table[i][1],
			    *got == '!' ? strlen(table[i][1]) : SIZE_MAX)) {
			fprintf(stderr, "%s: %s, expected %s\n", table[i][0],
				got, table[i][1]);
			exit(1);
		}
		free(got);
	}
}

static void schemes_are_known(void)
{
	CHECK(url_is("http://a/b") && url_is("HTTPS://a") && url_is("s3://"));
	CHECK(url_is("gs://b/k") && url_is("az://c/b"));
	CHECK(!url_is("") && !url_is("a") && !url_is("/http://a"));
	CHECK(!url_is("http:/a") && !url_is("ftp://a/b") && !url_is("s3"));
	CHECK(!url_is("file:///a"));
}

static void http_urls_are_encoded_where_they_must(void)
{
	static const char *const table[][2] = {
		{ "http://h", "http://h/" },
		{ "http://h/a%20b", "http://h/a%20b" },
		{ "http://h/a b", "http://h/a%20b" },
		{ "http://h/100%", "http://h/100%25" },
		{ "http://h/%zz%4", "http://h/%25zz%254" },
		{ "http://h/\xc3\xa9\"<>\\^`{|}[]",
		  "http://h/%C3%A9%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D" },
		{ "http://h/a/../b//c", "http://h/a/../b//c" },
		{ "http://h/a?b=c%2Fd&e=f g#x", "http://h/a?b=c%2Fd&e=f%20g" },
		{ "http://h?q", "http://h/?q" },
		{ "http://h#x", "http://h/" },
		{ "HTTP://WWW.Example.com:80/A", "http://www.example.com/A" },
		{ "https://h:443/A", "https://h/A" },
		{ "https://h:80/A", "https://h:80/A" },
		{ "http://h:/A", "http://h/A" },
		{ "http://u:p%40@h:81/A", "http://h:81/A" },
		{ "http://u@x@h/A", "http://h/A" },
		{ "http://[::1]/A", "http://[::1]/A" },
		{ "http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/" },
		{ "http://[::ffff:1.2.3.4]:80", "http://[::ffff:1.2.3.4]/" },
		{ "http://", "!there is no host" },
		{ "http:///a", "!there is no host" },
		{ "http://:80/a", "!there is no host" },
		{ "http://h:0/", "!the port is not" },
		{ "http://h:65536/", "!the port is not" },
		{ "http://h:99999999999999999999/", "!the port is no" },
		{ "http://h:8x/", "!the port is no number" },
		{ "http://[::1/a", "!a bracket" },
		{ "http://[::1]x/a", "!a bracket" },
		{ "http://[1.2.3.4]/", "!the text in brackets" },
		{ "http://[fe80::1%25eth0]/", "!the text in brackets" },
		{ "http://a b/", "!the host name has" },
		{ "http://.a/", "!the host name has" },
		{ "http://\xc3\xa9.de/", "!the host name is not ASCII" },
		{ "http://h/a\nb", "!the URL has a control" },
		{ "http://h/a\x7f", "!the URL has a control" },
		{ "http://u:%0a@h/", "!the user or the password" },
		{ "http://u:%00@h/", "!the user or the password" },
		{ "ftp://h/", "!the scheme is none" },
		{ "x", "!the scheme is none" },
	};
	struct url url;
	char why[URL_WHY_SIZE];

	requests(table, ARRAY_LEN(table), NULL);
	CHECK(!url_parse("http://u:p%40%3A@[::1]:81/A?b", &url, why));
	CHECK(!strcmp(url.userinfo, "u:p@:") && !strcmp(url.host, "[::1]"));
	CHECK(url.port == 81 && !strcmp(url.query, "b"));
	CHECK(!strcmp(url.visible, "http://[::1]:81/A"));
	url_fini(&url);
}

static void keys_are_literal(void)
{
	static const char *const table[][2] = {
		{ "s3://b-1/a", "https://b-1.s3.us-east-1.amazonaws.com/a" },
		{ "s3://bbb/a b+c%20=&#?",
		  "https://bbb.s3.us-east-1.amazonaws.com/"
		  "a%20b%2Bc%2520%3D%26%23" },
		{ "s3://bbb/a?b", "https://bbb.s3.us-east-1.amazonaws.com/"
				  "a%3Fb" },
		{ "s3://bbb/a??", "https://bbb.s3.us-east-1.amazonaws.com/"
				  "a%3F" },
		{ "s3://bbb//a//../b/", "https://bbb.s3.us-east-1.amazonaws.com"
					"//a//../b/" },
		{ "s3://bbb/\xc3\xa9~_-.!*'()",
		  "https://bbb.s3.us-east-1.amazonaws.com/"
		  "%C3%A9~_-.%21%2A%27%28%29" },
		{ "s3://bbb/a?versionId=3/L4+x",
		  "https://bbb.s3.us-east-1.amazonaws.com/a?"
		  "versionId=3%2FL4%2Bx" },
		{ "s3://bbb/a?versionId=3%2fL&x",
		  "https://bbb.s3.us-east-1.amazonaws.com/a?"
		  "versionId=3%2FL&x=" },
		{ "s3://bbb/a?b?versionId=3",
		  "https://bbb.s3.us-east-1.amazonaws.com/a%3Fb?versionId=3" },
		{ "s3://bbb/a?versionId=3?",
		  "https://bbb.s3.us-east-1.amazonaws.com/"
		  "a%3FversionId%3D3" },
		{ "s3://bbb/a?versionId", "https://bbb.s3.us-east-1.amazonaws"
					  ".com/a%3FversionId" },
		{ "s3://b.c.d/a",
		  "https://s3.us-east-1.amazonaws.com/b.c.d/a" },
		{ "s3://Bcd/a", "https://s3.us-east-1.amazonaws.com/Bcd/a" },
		{ "s3://b_d/a", "https://s3.us-east-1.amazonaws.com/b_d/a" },
		{ "s3://bb/a", "https://s3.us-east-1.amazonaws.com/bb/a" },
		{ "gs://b_d/a b?generation=17",
		  "https://storage.googleapis.com/b_d/a%20b?generation=17" },
		{ "gs://bbb/a?versionId=1",
		  "https://storage.googleapis.com/bbb/a%3FversionId%3D1" },
		{ "s3://", "!there is no bucket" },
		{ "s3:///a", "!there is no bucket" },
		{ "s3://bbb", "!the URL names no object" },
		{ "s3://bbb/", "!the URL names no object" },
		{ "s3://bbb/?versionId=1", "!the URL names no object" },
		{ "s3://../a", "!the bucket's name" },
		{ "s3://b:1/a", "!the bucket's name" },
		{ "s3://b%41/a", "!the bucket's name" },
		{ "s3://k:s@bbb/a", "!a URL of this scheme has no user" },
		{ "s3://b--use1-az4--x-s3/a", "!directory buckets" },
		{ "s3://bbb/a\tb", "!the URL has a control" },
		{ "s3://bbb/a?versionId=%00", "!the query has a control" },
	};

	requests(table, ARRAY_LEN(table), NULL);
}

static void keys_have_a_limit(void)
{
	char text[URL_SIZE_MAX + 100] = "s3://bbb/", *got;

	memset(text + 9, '%', URL_KEY_MAX);
	got = request_of(text, NULL);
	CHECK(!strncmp(got, "https://", 8) && strlen(got) > 3 * URL_KEY_MAX);
	free(got);
	text[9 + URL_KEY_MAX] = 'x';
	got = request_of(text, NULL);
	CHECK(!strcmp(got, "!the key is longer than 1024 bytes"));
	free(got);
	memset(text + 9, 'x', URL_SIZE_MAX);
	got = request_of(text, NULL);
	CHECK(!strcmp(got, "!the URL is longer than 16384 bytes"));
	free(got);
}

/* The URL of s3://BUCKET/k at a place. */
static void check_at(const char *bucket, struct url_place place,
		     const char *expected)
{
	char text[300];
	const char *const table[][2] = { { text, expected } };

	snprintf(text, sizeof(text), "s3://%s/k", bucket);
	requests(table, 1, &place);
}

static void buckets_have_places(void)
{
	check_at("bbb", (struct url_place){ .region = "eu-west-1" },
		 "https://bbb.s3.eu-west-1.amazonaws.com/k");
	check_at("bbb", (struct url_place){ .region = "cn-north-1" },
		 "https://bbb.s3.cn-north-1.amazonaws.com.cn/k");
	check_at("bbb", (struct url_place){ .region = "us-gov-west-1" },
		 "https://bbb.s3.us-gov-west-1.amazonaws.com/k");
	check_at("bbb", (struct url_place){ .region = "us-isob-east-1" },
		 "https://bbb.s3.us-isob-east-1.sc2s.sgov.gov/k");
	check_at("bbb", (struct url_place){ .region = "x.evil.com/" },
		 "!the region");
	check_at("bbb", (struct url_place){ .region = "" }, "!the region");
	check_at("bbb", (struct url_place){ .style = URL_STYLE_PATH },
		 "https://s3.us-east-1.amazonaws.com/bbb/k");
	check_at("b.b", (struct url_place){ .style = URL_STYLE_VIRTUAL },
		 "https://b.b.s3.us-east-1.amazonaws.com/k");
	check_at("B_B", (struct url_place){ .style = URL_STYLE_VIRTUAL },
		 "!addressing style virtual: the bucket");
	check_at("bbb", (struct url_place){ .endpoint = "http://h:9000" },
		 "http://h:9000/bbb/k");
	check_at("bbb", (struct url_place){ .endpoint = "https://H/a//" },
		 "https://h/a/bbb/k");
	check_at("bbb", (struct url_place){ .endpoint = "" },
		 "https://bbb.s3.us-east-1.amazonaws.com/k");
	check_at("bbb",
		 (struct url_place){ .endpoint = "https://h:1/",
				     .style = URL_STYLE_VIRTUAL },
		 "https://bbb.h:1/k");
	check_at("bbb",
		 (struct url_place){ .endpoint = "http://[::1]:1",
				     .style = URL_STYLE_VIRTUAL },
		 "!addressing style virtual: the endpoint");
	check_at("bbb",
		 (struct url_place){ .endpoint = "http://127.0.0.1:1",
				     .style = URL_STYLE_VIRTUAL },
		 "!addressing style virtual: the endpoint");
	check_at("bbb", (struct url_place){ .endpoint = "h:9000" },
		 "!endpoint: expected http");
	check_at("bbb", (struct url_place){ .endpoint = "s3://h/x" },
		 "!endpoint: expected");
	check_at("bbb", (struct url_place){ .endpoint = "http://u:p@h" },
		 "!endpoint: expected");
}

static void azure_urls_have_an_account(void)
{
	static const char *const table[][2] = {
		{ "az://c/a b", "https://acc1.blob.core.windows.net/c/a%20b?"
				"sv=1&sig=a%2B" },
		{ "az://c@acc2/a", "https://acc2.blob.core.windows.net/c/a?"
				   "sv=1&sig=a%2B" },
		{ "az://$web/a?sp=r&sig=x%2F",
		  "https://acc1.blob.core.windows.net/%24web/a?sp=r&sig=x%2F" },
		{ "az://c@a.b/a", "!the account" },
		{ "az://c@/a", "!the account" },
		{ "az://C/a", "!the bucket's name" },
	};
	static const char *const bare[][2] = {
		{ "az://c/a", "!the account is not known" },
		{ "az://c@acc2/a", "https://acc2.blob.core.windows.net/c/a" },
	};
	static const struct url_place place = { .account = "acc1",
						.sas = "?sv=1&sig=a%2B" };

	requests(table, ARRAY_LEN(table), &place);
	requests(bare, ARRAY_LEN(bare), NULL);
}

static void messages_have_no_secrets(void)
{
	static const char *const table[][2] = {
		{ "http://u:p@h:1/a?X-Amz-Signature=s#f", "http://h:1/a" },
		{ "http://u:p@h:99999/a?s", "http://h:99999/a" },
		{ "http://u:p/w@h/a?s", "http://h/a" },
		{ "http://u:p?w@h/a", "http://h/a" },
		{ "http://[::1]:1/a@b", "http://[::1]:1/a@b" },
		{ "http://h:80/a@b", "http://h:80/a@b" },
		{ "http://a@b:p/w@h/", "http://h/" },
		{ "s3://k:s/e@bbb/a", "s3://bbb/a" },
		{ "s3://k:s@bbb/a?versionId=1", "s3://bbb/a" },
		{ "s3://bbb/a?b", "s3://bbb/a?b" },
		{ "s3://bbb", "s3://bbb" },
		{ "az://c@acc/a?sig=s?", "az://c@acc/a" },
		{ "az://acc:key@c/a", "az://c/a" },
		{ "http://h/a\nb\x1b[m", "http://h/a?b?[m" },
		{ "/local/a?b", "/local/a?b" },
		{ "file:///a@b?c", "file:///a@b?c" },
		{ "hf://b/x.beton", "hf://b/x.beton" },
		{ "htp://u:p/w@h/a?s", "htp://h/a" },
		{ " https://u:p?w@h/a#s", " https://h/a" },
	};
	struct url url;
	char *got, why[URL_WHY_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		got = url_visible(table[i][0]);
		if (strcmp(got, table[i][1]))
			fprintf(stderr, "%s: %s\n", table[i][0], got);
		CHECK(!strcmp(got, table[i][1]));
		free(got);
	}
	CHECK(!url_parse("s3://bbb/k?versionId=1", &url, why));
	CHECK(!strcmp(url.visible, "s3://bbb/k"));
	url_fini(&url);
}

static void siblings_stand_beside(void)
{
	static const char *const table[][2] = {
		{ "http://u:p@h/a?t=1#f", "http://u:p@h/a.sums?t=1#f" },
		{ "http://h/a", "http://h/a.sums" },
		{ "http://h?/", "http://h/.sums?/" },
		{ "s3://bbb/a?versionId=1", "s3://bbb/a.sums" },
		{ "s3://bbb/a?b", "s3://bbb/a?b.sums" },
		{ "s3://bbb/a?versionId=1?", "s3://bbb/a?versionId=1.sums?" },
		{ "s3://bbb/a??", "s3://bbb/a?.sums" },
		{ "gs://bbb/a?generation=1", "gs://bbb/a.sums" },
		{ "az://c/a?sig=1", "az://c/a.sums?sig=1" },
		{ "/a/b?c", "/a/b?c.sums" },
	};
	char *got;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		got = url_sibling(table[i][0], ".sums");
		if (strcmp(got, table[i][1]))
			fprintf(stderr, "%s: %s\n", table[i][0], got);
		CHECK(!strcmp(got, table[i][1]));
		free(got);
	}
	CHECK(!url_sibling("s3://bbb", ".sums"));
}

static void file_urls_are_paths(void)
{
	static const char *const table[][2] = {
		{ "file:///a%20b%2f", "/a b/" },
		{ "FILE://localhost/a", "/a" },
		{ "file:/a", "/a" },
	};
	static const char *const bad[] = { "file:",	    "file://",
					   "file:a",	    "file://other/a",
					   "file:///a%00b", "file:////a" };
	char *path;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK(!url_file_path(table[i][0], &path));
		CHECK(path && !strcmp(path, table[i][1]));
		free(path);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(url_file_path(bad[i], &path) == -EINVAL && !path);
	CHECK(!url_file_path("files", &path) && !path);
	CHECK(!url_file_path("", &path) && !path);
}

int main(void)
{
	schemes_are_known();
	http_urls_are_encoded_where_they_must();
	keys_are_literal();
	keys_have_a_limit();
	buckets_have_places();
	azure_urls_have_an_account();
	messages_have_no_secrets();
	siblings_stand_beside();
	file_urls_are_paths();
	return 0;
}

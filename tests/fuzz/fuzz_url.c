/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a URL. Requests contain only bytes that URLs may have, and the
   form for messages contains no secret that the parser has found. */
#include "fs/source/url/url.h"
#include "tests/fuzz/fuzz.h"

static const struct url_place places[] = {
	{ .region = "eu-west-1" },
	{ .endpoint = "http://[::1]:9000/x", .account = "acc", .sas = "?s=1" },
	{ .endpoint = "https://h", .style = URL_STYLE_VIRTUAL },
};

static void check_plain(const char *text)
{
	for (; *text; text++)
		MUST(*text > ' ' && *text < 0x7f);
}

static void check_request(const struct url *url, const struct url_place *place)
{
	char why[URL_WHY_SIZE] = "";
	struct url_request request;

	if (url_request(url, place, &request, why)) {
		MUST(why[0]);
	} else {
		check_plain(request.url);
		MUST(*request.path == '/' && !strpbrk(request.path, "?#"));
		MUST(*request.host && !strpbrk(request.host, "/?#@"));
		MUST(strstr(request.url, request.path));
	}
	url_request_fini(&request);
}

/* The file beside a URL has a URL, too, with the same place. */
static void check_sibling(const char *text, const struct url *url)
{
	char *beside = url_sibling(text, "x"), why[URL_WHY_SIZE];
	struct url other;
	int r;

	MUST(beside);
	r = url_parse(beside, &other, why);
	MUST(!r || strlen(text) >= URL_KEY_MAX);
	if (!r && url->key) {
		MUST(!strncmp(other.key, url->key, strlen(url->key)));
		MUST(!strcmp(other.key + strlen(url->key), "x"));
		MUST(!strcmp(other.bucket, url->bucket));
	} else if (!r) {
		MUST(!strcmp(other.host, url->host));
	}
	url_fini(&other);
	free(beside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), why[URL_WHY_SIZE] = "";
	char *visible = url_visible(text), *path = NULL;
	struct url url;

	MUST(visible && strlen(visible) <= strlen(text));
	if (url_parse(text, &url, why)) {
		MUST(why[0]);
	} else {
		MUST(!strcmp(visible, url.visible));
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
			check_request(&url, &places[i]);
		check_sibling(text, &url);
	}
	if (!url_file_path(text, &path) && path)
		MUST(*path == '/');
	free(path);
	url_fini(&url);
	free(visible);
	free(text);
	return 0;
}

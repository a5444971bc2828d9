/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of an object: which differences of a URL name other bytes. */
#include <string.h>

#include "fs/source/object/identity.h"

#include "tests/unit/t.h"

static struct pin strong(const char *etag)
{
	struct pin pin = { .is_set = true, .size = 4096 };

	strcpy(pin.etag, etag);
	return pin;
}

static void identify(const struct pin *pin, const char *text,
		     char out[IDENTITY_SIZE])
{
	const struct url_place place = { .endpoint = "http://store:9000" };
	struct url_request request = { 0 };
	char why[URL_WHY_SIZE];
	struct url url;

	CHECK(!url_parse(text, &url, why));
	CHECK(!url_request(&url, &place, &request, why));
	identity_make(pin, &url, &request, out);
	url_request_fini(&request);
	url_fini(&url);
}

static bool are_equal(const char *a, const char *b)
{
	const struct pin pin = strong("\"1\"");
	char x[IDENTITY_SIZE], y[IDENTITY_SIZE];

	identify(&pin, a, x);
	identify(&pin, b, y);
	return !strcmp(x, y);
}

#define HOST "http://h/get"

static void check_urls(void)
{
	CHECK(are_equal(HOST "?id=1", HOST "?id=1"));
	CHECK(!are_equal(HOST "?id=1", HOST "?id=2"));
	CHECK(!are_equal(HOST "?id=1", HOST));
	CHECK(!are_equal(HOST "?a=1&b=2", HOST "?a=1b=2"));
	CHECK(!are_equal("http://h/a", "https://h/a"));
	CHECK(!are_equal("http://h/a", "http://h:81/a"));
	CHECK(!are_equal("http://u:p@h/a", "http://w:p@h/a"));
	CHECK(are_equal("http://u:p@h/a", "http://u:q@h/a"));
	CHECK(!are_equal("s3://b/a", "s3://b/a?versionId=7"));
}

static void check_signatures(void)
{
	CHECK(are_equal(HOST "?id=1&X-Amz-Signature=1&x-amz-date=2",
			HOST "?X-Amz-Signature=3&id=1"));
	CHECK(are_equal(HOST "?X-Goog-Signature=1", HOST));
	CHECK(are_equal(HOST "?Expires=1&Signature=2&Key-Pair-Id=3",
			HOST "?Expires=4&Signature=5&Key-Pair-Id=6"));
	CHECK(are_equal(HOST "?sv=1&sp=r&sig=2", HOST "?sv=3&sp=r&sig=4"));
	/* Without a signature they may name anything. */
	CHECK(!are_equal(HOST "?sp=1", HOST "?sp=2"));
	CHECK(!are_equal(HOST "?Expires=1", HOST "?Expires=2"));
	CHECK(!are_equal(HOST "?X-Amz-", HOST));
	CHECK(!are_equal(HOST "?sig=1&snapshot=1", HOST "?sig=1&snapshot=2"));
}

static void check_versions(void)
{
	struct pin weak = strong("\"1\""), none = { .is_set = true };
	char a[IDENTITY_SIZE], b[IDENTITY_SIZE];

	weak.etag_is_weak = true;
	none.has_modified = true;
	CHECK(!identity_is_strong(&weak) && !identity_is_strong(&none));
	identify(&weak, HOST, a);
	identify(&weak, HOST, b);
	CHECK(strcmp(a, b));
	identify(&none, HOST, a);
	identify(&none, HOST, b);
	CHECK(strcmp(a, b));
	strcpy(none.version, "v1");
	CHECK(identity_is_strong(&none));
	identify(&none, HOST, a);
	strcpy(none.version, "v2");
	identify(&none, HOST, b);
	CHECK(strcmp(a, b));
}

/* The stored text has neither a password nor a query. */
static void check_secrets(void)
{
	const struct pin pin = strong("\"1\"");
	char text[IDENTITY_SIZE];

	identify(&pin, "http://u:hunter2@h/a?token=hunter2", text);
	CHECK(!strstr(text, "hunter2") && !strstr(text, "token"));
	CHECK(strlen(text) < IDENTITY_SIZE - 1);
}

int main(void)
{
	check_urls();
	check_signatures();
	check_versions();
	check_secrets();
	return 0;
}

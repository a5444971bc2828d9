/* SPDX-License-Identifier: Apache-2.0 */
/* The version of an object: which answers belong to it. */
#include <string.h>

#include "fs/source/pacing/pin.h"

#include "tests/unit/t.h"

static struct http_answer answer(uint64_t first, uint64_t last, uint64_t total,
				 const char *etag)
{
	struct http_answer a = { .status = 206,
				 .has_range = true,
				 .first = first,
				 .last = last,
				 .total = total,
				 .has_length = true,
				 .length = last - first + 1,
				 .has_modified = true,
				 .modified = 784111777 };

	strcpy(a.etag, etag);
	return a;
}

static enum pin_verdict judge(struct pin *pin, const struct http_answer *a,
			      uint64_t off, uint64_t size)
{
	char why[PIN_WHY_SIZE] = "";
	uint64_t end = 0;
	enum pin_verdict v = pin_check(pin, a, off, size, &end, why);

	CHECK(v == PIN_OK ? end == off + size || end == pin->size ||
				    end == a->last + 1
			  : *why != '\0');
	return v;
}

static struct pin pinned(void)
{
	struct http_answer a = answer(0, 99, 1000, "\"x\"");
	struct pin pin = { 0 };

	CHECK(judge(&pin, &a, 0, 100) == PIN_OK);
	CHECK(pin.is_set && pin.size == 1000 && !strcmp(pin.etag, "\"x\""));
	return pin;
}

/* A proxy may answer like that for a moment, but a server of ranges does not
   begin with it. */
static void refused_at_first(struct pin *pin, const struct http_answer *a)
{
	struct pin first = { 0 };

	CHECK(judge(&first, a, 50, 10) == PIN_REFUSED);
	CHECK(judge(pin, a, 50, 10) == PIN_WRONG);
}

static void test_ranges(void)
{
	struct pin pin = pinned();
	struct http_answer a = answer(50, 59, 1000, "\"x\"");

	CHECK(judge(&pin, &a, 50, 10) == PIN_OK);
	CHECK(judge(&pin, &a, 49, 10) == PIN_WRONG);
	CHECK(judge(&pin, &a, 50, 9) == PIN_WRONG);
	/* Fewer bytes than requested. */
	CHECK(judge(&pin, &a, 50, 20) == PIN_OK);
	a.length = 11;
	CHECK(judge(&pin, &a, 50, 10) == PIN_WRONG);
	a = answer(50, 59, 1000, "\"x\"");
	a.status = 200;
	CHECK(judge(&pin, &a, 50, 10) == PIN_OK);
	a.has_range = false;
	refused_at_first(&pin, &a);
	a.status = 206;
	CHECK(judge(&pin, &a, 50, 10) == PIN_WRONG);
	a = answer(50, 59, 1000, "\"x\"");
	a.is_multipart = true;
	refused_at_first(&pin, &a);
	a = answer(50, 59, 1000, "\"x\"");
	a.malformed = true;
	refused_at_first(&pin, &a);
}

static void test_sizes(void)
{
	struct pin pin = { 0 };
	struct http_answer a = answer(0, 9, (1ull << 63) - 1, "\"x\"");

	CHECK(judge(&pin, &a, 0, 10) == PIN_OK);
	pin = (struct pin){ 0 };
	a.total++;
	CHECK(judge(&pin, &a, 0, 10) == PIN_REFUSED && !pin.is_set);
}

static void test_versions(void)
{
	struct pin pin = pinned();
	struct http_answer a = answer(50, 59, 1000, "\"y\"");

	CHECK(judge(&pin, &a, 50, 10) == PIN_REPLACED);
	/* One ETag has one size, so this is no other object. */
	a = answer(50, 59, 1001, "\"x\"");
	CHECK(judge(&pin, &a, 50, 10) == PIN_WRONG);
	a = answer(50, 59, 1000, "\"x\"");
	a.etag_is_weak = true;
	CHECK(judge(&pin, &a, 50, 10) == PIN_REPLACED);
	a = answer(50, 59, 1000, "");
	CHECK(judge(&pin, &a, 50, 10) == PIN_WRONG);
	/* A date alone does not make another object. */
	a = answer(50, 59, 1000, "\"x\"");
	a.modified++;
	CHECK(judge(&pin, &a, 50, 10) == PIN_OK);
	strcpy(pin.version, "1");
	strcpy(a.version, "2");
	CHECK(judge(&pin, &a, 50, 10) == PIN_REPLACED);
	strcpy(a.version, "1");
	pin.generation = 1;
	a.generation = 2;
	CHECK(judge(&pin, &a, 50, 10) == PIN_REPLACED);
}

static void test_without_etag(void)
{
	struct http_answer a = answer(0, 99, 1000, "");
	struct pin pin = { 0 };
	char line[PIN_LINE_SIZE];

	CHECK(judge(&pin, &a, 0, 100) == PIN_OK);
	CHECK(pin_condition(&pin, line));
	CHECK(!strcmp(line,
		      "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"));
	a = answer(5, 9, 1001, "");
	CHECK(judge(&pin, &a, 5, 5) == PIN_REPLACED);
	a = answer(5, 9, 1000, "");
	CHECK(judge(&pin, &a, 5, 5) == PIN_OK);
	a.modified++;
	CHECK(judge(&pin, &a, 5, 5) == PIN_REPLACED);
	a.has_modified = false;
	CHECK(judge(&pin, &a, 5, 5) == PIN_WRONG);
}

static void test_whole(void)
{
	struct http_answer a = { .status = 200,
				 .has_length = true,
				 .length = 10 };
	struct pin pin = { 0 };
	char line[PIN_LINE_SIZE];

	CHECK(judge(&pin, &a, 0, 9) == PIN_REFUSED && !pin.is_set);
	CHECK(judge(&pin, &a, 0, 10) == PIN_OK && pin.size == 10);
	CHECK(!pin_condition(&pin, line));
	a.has_length = false;
	pin = (struct pin){ 0 };
	CHECK(judge(&pin, &a, 0, 10) == PIN_REFUSED);
	a = answer(0, 9, HTTP_UNKNOWN, "\"x\"");
	CHECK(judge(&pin, &a, 0, 10) == PIN_REFUSED && !pin.is_set);
}

int main(void)
{
	test_ranges();
	test_sizes();
	test_versions();
	test_without_etag();
	test_whole();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as heads of two answers, line by line: the first one may set the
   pin, and then the second one is compared with it. An accepted answer has only
   requested bytes, and a condition has no line break. */
#include "fs/source/net/http.h"
#include "fs/source/pacing/pin.h"
#include "fs/source/pacing/retry.h"
#include "tests/fuzz/fuzz.h"

enum { OFF = 100, SIZE = 1000 };

static const uint8_t *parse(const uint8_t *at, const uint8_t *end,
			    struct http_answer *a)
{
	const uint8_t *line, *next;

	for (line = at; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next + 1 : end;
		http_line(a, (const char *)line, (size_t)(next - line));
		if (next - line == 1)
			return next;
	}
	return end;
}

static void check_answer(const struct http_answer *a)
{
	MUST(!a->status || (a->status >= 100 && a->status <= 999));
	MUST(!a->has_range || (a->first <= a->last && a->last < a->total));
	MUST(strlen(a->etag) < HTTP_TAG_MAX);
	MUST(strlen(a->version) < HTTP_VERSION_MAX);
	MUST(retry_errno(a->status) <= 0);
}

static void check_line(const struct pin *pin)
{
	char line[PIN_LINE_SIZE];

	if (!pin_condition(pin, line))
		return;
	MUST(strlen(line) < sizeof(line));
	MUST(!strpbrk(line, "\r\n"));
}

static void check(struct pin *pin, const struct http_answer *a, uint64_t off)
{
	char why[PIN_WHY_SIZE] = "";
	struct pin before = *pin;
	uint64_t end = 0;
	enum pin_verdict v = pin_check(pin, a, off, SIZE, &end, why);

	if (v != PIN_OK) {
		MUST(*why && strlen(why) < sizeof(why));
		MUST(!memcmp(&before, pin, sizeof(before)));
		return;
	}
	MUST(end <= off + SIZE && end <= pin->size);
	MUST(!before.is_set || before.size == pin->size);
	MUST(end > off || !pin->size);
	check_line(pin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_answer first = { 0 }, second = { 0 };
	const uint8_t *end = data + size;
	struct pin pin;

	memset(&pin, 0, sizeof(pin));
	parse(parse(data, end, &first), end, &second);
	check_answer(&first);
	check_answer(&second);
	check(&pin, &first, 0);
	check(&pin, &second, OFF);
	return 0;
}

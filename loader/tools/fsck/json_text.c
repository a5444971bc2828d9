/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/json_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/utf8.h"

struct json {
	const char *at;
	const char *end;
	const char *why; /* NULL: sound so far */
	size_t depth;
	char closing[JSON_TEXT_DEPTH]; /* of the open lists and objects */
};

static void skip_space(struct json *j)
{
	while (j->at < j->end && memchr(" \t\r\n", *j->at, 4))
		j->at++;
}

static bool take(struct json *j, char c)
{
	bool is_there = j->at < j->end && *j->at == c;

	j->at += is_there;
	return is_there;
}

static bool fail(struct json *j, const char *why)
{
	j->why = why;
	return false;
}

/* --- strings --- */

static bool take_character(struct json *j)
{
	size_t n =
		utf8_length((const uint8_t *)j->at, (size_t)(j->end - j->at));

	j->at += n;
	return n || fail(j, "bytes that are not UTF-8");
}

static bool take_escape(struct json *j)
{
	char c = j->at < j->end ? *j->at++ : '\0';

	if (c == 'u') {
		for (int i = 0; i < 4; i++, j->at++) {
			if (j->at == j->end || !isxdigit((uint8_t)*j->at))
				return fail(j, "a bad escape in a string");
		}
		return true;
	}
	if (!c || !strchr("\"\\/bfnrt", c))
		return fail(j, "a bad escape in a string");
	return true;
}

/* The rest of a string, behind its first quotation mark. */
static bool take_string(struct json *j)
{
	while (j->at < j->end) {
		if (take(j, '"'))
			return true;
		if ((uint8_t)*j->at < 0x20)
			return fail(j, "a control character in a string");
		if (take(j, '\\') ? !take_escape(j) : !take_character(j))
			return false;
	}
	return fail(j, "a string that does not end");
}

/* --- numbers and words --- */

static bool take_digits(struct json *j)
{
	const char *start = j->at;

	while (j->at < j->end && isdigit((uint8_t)*j->at))
		j->at++;
	return j->at > start || fail(j, "a number without digits");
}

static bool take_word(struct json *j, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
		return false;
	j->at += n;
	return true;
}

static bool take_number(struct json *j)
{
	take(j, '-');
	if (take_word(j, "Infinity"))
		return true;
	if (!take(j, '0') && !take_digits(j))
		return false;
	if (take(j, '.') && !take_digits(j))
		return false;
	if (!take(j, 'e') && !take(j, 'E'))
		return true;
	if (!take(j, '-'))
		take(j, '+');
	return take_digits(j);
}

static bool take_scalar(struct json *j)
{
	if (take(j, '"'))
		return take_string(j);
	if (take_word(j, "true") || take_word(j, "false") ||
	    take_word(j, "null") || take_word(j, "NaN"))
		return true;
	if (j->at < j->end &&
	    (isdigit((uint8_t)*j->at) || *j->at == '-' || *j->at == 'I'))
		return take_number(j);
	return fail(j, j->at < j->end ? "a character where a value belongs"
				      : "a text that is cut off");
}

/* --- lists and objects --- */

static bool take_key(struct json *j)
{
	skip_space(j);
	if (!take(j, '"'))
		return fail(j, "a member without a name");
	if (!take_string(j))
		return false;
	skip_space(j);
	return take(j, ':') || fail(j, "a name without a value");
}

/* Opens lists and objects, up to a scalar or an empty list or object. Returns
   whether a value has ended. */
static bool open_value(struct json *j)
{
	for (;;) {
		char closing;

		skip_space(j);
		closing = take(j, '[') ? ']' : take(j, '{') ? '}' : '\0';
		if (!closing)
			return take_scalar(j);
		skip_space(j);
		if (take(j, closing))
			return true;
		if (j->depth == JSON_TEXT_DEPTH)
			return fail(j, "values that are nested too deep");
		j->closing[j->depth++] = closing;
		if (closing == '}' && !take_key(j))
			return false;
	}
}

/* After a value: closes what ends. Returns whether another value follows. */
static bool next_value(struct json *j)
{
	while (j->depth) {
		char closing = j->closing[j->depth - 1];

		skip_space(j);
		if (take(j, ','))
			return closing == ']' || take_key(j);
		if (!take(j, closing))
			return fail(j, "a list or an object that does not end");
		j->depth--;
	}
	return false;
}

const char *json_text_check(const char *text, size_t size, size_t *at)
{
	struct json j = { .at = text, .end = text + size };

	while (open_value(&j) && next_value(&j))
		;
	skip_space(&j);
	if (!j.why && j.at < j.end)
		j.why = "bytes after the value";
	*at = (size_t)(j.at - text);
	return j.why;
}

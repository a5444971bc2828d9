/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/typed.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB" };

/* The word at an index, and its length; NULL past the end. */
static const char *word_at(const struct typed *type, size_t i, size_t *size)
{
	const char *word = type->words;

	if (type->word_at) {
		word = type->word_at(i);
		*size = word ? strlen(word) : 0;
		return word;
	}
	for (; word && i; i--) {
		word = strchr(word, '|');
		word = word ? word + 1 : NULL;
	}
	*size = word ? strcspn(word, "|") : 0;
	return word;
}

static bool parse_word(const struct typed *type, const char *text, size_t size,
		       uint64_t *out)
{
	const char *word;
	size_t n;

	for (size_t i = 0; (word = word_at(type, i, &n)); i++) {
		if (n == size && !memcmp(word, text, n)) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Reads the digits at the start of a text. Returns how many there are; 0: none,
   or a number that exceeds 64 bits. */
static size_t read_digits(const char *text, size_t size, unsigned base,
			  uint64_t *out)
{
	size_t n = 0;

	*out = 0;
	for (; n < size && text[n] >= '0' && text[n] < (char)('0' + base);
	     n++) {
		if (!mul_ok(*out, base, out) ||
		    !add_ok(*out, (uint64_t)(text[n] - '0'), out))
			return 0;
	}
	return n;
}

/* Multiplies a number by a unit: "K", "k", "KiB", and so on. */
static bool apply_unit(const char *text, size_t size, bool strict, uint64_t *v)
{
	char letter = strict ? text[0] : (char)toupper((unsigned char)text[0]);

	if (size != 3 && (size != 1 || strict))
		return false;
	if (size == 3 && memcmp(text + 1, "iB", 2))
		return false;
	for (size_t i = 1; i < ARRAY_LEN(units); i++) {
		if (letter == units[i][0])
			return mul_ok(*v, (uint64_t)1 << (10 * i), v);
	}
	return false;
}

/* Multiplies a number of seconds by "s", "m" or "h". */
static bool apply_time(const char *text, size_t size, uint64_t *v)
{
	uint64_t seconds = *text == 'h' ? 3600 : *text == 'm' ? 60 : 1;

	return size == 1 && strchr("smh", *text) && mul_ok(*v, seconds, v);
}

/* Multiplies a number by the unit behind it. */
static bool apply_suffix(const struct typed *type, const char *text,
			 size_t size, uint64_t *v)
{
	if (type->kind == TYPED_TIME)
		return apply_time(text, size, v);
	return type->kind == TYPED_SIZE &&
	       apply_unit(text, size, type->strict, v);
}

bool typed_parse(const struct typed *type, const char *text, size_t size,
		 uint64_t *out)
{
	uint64_t v;
	size_t n;

	if (type->kind == TYPED_WORD)
		return parse_word(type, text, size, out);
	n = read_digits(text, size, type->kind == TYPED_OCTAL ? 8 : 10, &v);
	if (!n || (type->strict && n > 1 && text[0] == '0'))
		return false;
	if (n < size && !apply_suffix(type, text + n, size - n, &v))
		return false;
	if (v < type->min || v > type->max)
		return false;
	*out = v;
	return true;
}

bool typed_parse_string(const struct typed *type, const char *text,
			uint64_t *out)
{
	return typed_parse(type, text, strlen(text), out);
}

/* Writes seconds: 90s, 5m, 24h. */
static void time_text(uint64_t v, char out[32])
{
	bool hours = v && v % 3600 == 0, minutes = v && v % 60 == 0;

	snprintf(out, 32, "%llu%s",
		 (unsigned long long)(hours	? v / 3600
				      : minutes ? v / 60
						: v),
		 hours	   ? "h"
		 : minutes ? "m"
			   : "s");
}

/* Writes a number in the notation of this kind: 8, 0777, 16MiB. */
static void number_text(enum typed_kind kind, uint64_t v, char out[32])
{
	size_t i = 0;

	if (kind == TYPED_TIME) {
		time_text(v, out);
		return;
	}
	while (kind == TYPED_SIZE && v && v % 1024 == 0 &&
	       i + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	snprintf(out, 32, kind == TYPED_OCTAL ? "0%llo%s" : "%llu%s",
		 (unsigned long long)v, units[i]);
}

static void expected_word(const struct typed *type, char *out)
{
	size_t n, used = 0;
	const char *before = word_at(type, 1, &n) ? "one of " : "", *word;

	for (size_t i = 0; (word = word_at(type, i, &n)); i++) {
		if (used >= TYPED_EXPECTED_SIZE)
			return;
		used += (size_t)snprintf(out + used, TYPED_EXPECTED_SIZE - used,
					 "%s%.*s", before, (int)n, word);
		before = ", ";
	}
}

static const char *const names[] = {
	[TYPED_NUMBER] = "a whole number",
	[TYPED_OCTAL] = "an octal number",
	[TYPED_SIZE] = "a size",
	[TYPED_TIME] = "a time",
};

/* Without a limit above. */
static void expected_from(const struct typed *type, const char *min, char *out)
{
	const char *name = names[type->kind];
	bool is_size = type->kind == TYPED_SIZE;

	if (is_size && type->min > 1)
		snprintf(out, TYPED_EXPECTED_SIZE, "%s from %s, such as 512MiB",
			 name, min);
	else if (is_size)
		snprintf(out, TYPED_EXPECTED_SIZE, "%s%s, such as 512MiB", name,
			 type->min ? " above 0" : "");
	else if (type->min)
		snprintf(out, TYPED_EXPECTED_SIZE, "%s of at least %s", name,
			 min);
	else
		snprintf(out, TYPED_EXPECTED_SIZE, "%s below 2^64", name);
}

static void expected_number(const struct typed *type, char *out)
{
	const char *name = names[type->kind];
	char min[32], max[32];

	number_text(type->kind, type->min, min);
	number_text(type->kind, type->max, max);
	if (type->max >= UINT64_MAX - 1)
		expected_from(type, min, out);
	else if (type->kind != TYPED_SIZE && type->max - type->min == 1)
		snprintf(out, TYPED_EXPECTED_SIZE, "%s or %s", min, max);
	else if (type->kind == TYPED_OCTAL && !type->min)
		snprintf(out, TYPED_EXPECTED_SIZE, "%s up to %s", name, max);
	else
		snprintf(out, TYPED_EXPECTED_SIZE, "%s from %s to %s", name,
			 min, max);
}

const char *typed_expected(const struct typed *type,
			   char out[TYPED_EXPECTED_SIZE])
{
	out[0] = '\0';
	if (type->kind == TYPED_WORD)
		expected_word(type, out);
	else
		expected_number(type, out);
	return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/name.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/typed.h"
#include "fs/base/util/utf8.h"

static bool stays_in_name(const char *name, size_t i, size_t size)
{
	unsigned char c = (unsigned char)name[i];

	return isalnum(c) || c == '_' || c == '-' ||
	       (c == '.' && i && i + 1 < size);
}

void name_escape(const char *name, char *out)
{
	size_t size = strlen(name);

	if (!size)
		*out++ = '%';
	for (size_t i = 0; i < size; i++) {
		if (stays_in_name(name, i, size))
			*out++ = name[i];
		else
			out += sprintf(out, "%%%02X", (unsigned char)name[i]);
	}
	*out = '\0';
}

void name_quote(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text) || *text == '\\')
			fprintf(out, "\\%03o", (unsigned char)*text);
		else
			fputc(*text, out);
	}
}

static bool is_quoted(const char *text)
{
	return text[0] == '\\' && text[1] >= '0' && text[1] <= '3' &&
	       text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
	       text[3] <= '7';
}

void name_unquote(char *text)
{
	char *out = text;

	while (*text) {
		if (is_quoted(text)) {
			*out++ = (char)((text[1] - '0') << 6 |
					(text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/* Returns the bytes of the control character at the start of a text, or 0. */
static size_t control_size(const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n = utf8_length(s, strnlen(text, 4));

	return utf8_is_control(s, n) ? n : 0;
}

void name_tame(char *text)
{
	while (*text) {
		size_t n = control_size(text);

		memset(text, '?', n);
		text += n ? n : 1;
	}
}

void name_print(FILE *out, const char *text)
{
	while (*text) {
		size_t n = control_size(text);

		fwrite(n ? "??" : text, 1, n ? n : 1, out);
		text += n ? n : 1;
	}
}

unsigned name_digits(uint64_t n)
{
	unsigned digits = 1;

	for (uint64_t last = n ? n - 1 : 0; last >= 10; last /= 10)
		digits++;
	return digits < 6 ? 6 : digits;
}

unsigned name_number(char out[NAME_DIGITS_MAX + 1], uint64_t number,
		     unsigned digits)
{
	unsigned size = 1;

	for (uint64_t v = number; v >= 10; v /= 10)
		size++;
	size = size < digits ? digits : size;
	out[size] = '\0';
	for (unsigned i = size; i > 0; number /= 10)
		out[--i] = (char)('0' + number % 10);
	return size;
}

bool name_parse_number(const char *name, uint64_t n, uint64_t *number,
		       const char **rest)
{
	unsigned digits = name_digits(n);
	uint64_t v = 0;

	for (unsigned i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)name[i]) || !mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(name[i] - '0'), &v))
			return false;
	}
	if (v >= n)
		return false;
	*number = v;
	*rest = name + digits;
	return true;
}

bool name_parse_u64(const char *text, size_t size, uint64_t *out)
{
	static const struct typed number = TYPED_STRICT_IN(0, UINT64_MAX);

	return typed_parse(&number, text, size, out);
}

int text_print(char **out, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(out, format, args);
	va_end(args);
	if (n >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/convert.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"

/* Longer numbers have digits that a double cannot hold. */
enum { FLOAT_TEXT_MAX = 400 };

bool convert_int(const char *text, size_t size, int64_t *out)
{
	bool minus = size && *text == '-';
	size_t i = size && (*text == '-' || *text == '+');
	int64_t v = 0;

	if (i == size)
		return false;
	for (; i < size; i++) {
		if (!isdigit((unsigned char)text[i]) ||
		    __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_sub_overflow(v, text[i] - '0', &v))
			return false;
	}
	/* The negative of INT64_MIN is no int64. */
	if (!minus && v == INT64_MIN)
		return false;
	*out = minus ? v : -v;
	return true;
}

/* Returns the bytes of digits, a point and an exponent; 0: it is no decimal
   number. */
static size_t decimal_size(const char *s)
{
	const char *p = s + (*s == '-' || *s == '+'), *first = p, *e;
	size_t digits;

	p += strspn(p, "0123456789");
	digits = (size_t)(p - first);
	if (*p == '.') {
		size_t more = strspn(p + 1, "0123456789");

		digits += more;
		p += 1 + more;
	}
	if (!digits)
		return 0;
	if (*p == 'e' || *p == 'E') {
		e = p + 1 + (p[1] == '-' || p[1] == '+');
		if (isdigit((unsigned char)*e))
			p = e + strspn(e, "0123456789");
	}
	return (size_t)(p - s);
}

static bool is_special(const char *text, double *out)
{
	static const struct {
		const char *name;
		double value;
	} names[] = { { "nan", NAN },
		      { "inf", INFINITY },
		      { "infinity", INFINITY } };
	const char *name = text + (*text == '-' || *text == '+');

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcasecmp(name, names[i].name) == 0) {
			*out = *text == '-' ? -names[i].value : names[i].value;
			return true;
		}
	}
	return false;
}

bool convert_float(const char *text, size_t size, double *out)
{
	char copy[FLOAT_TEXT_MAX + 1];

	if (!size || size > FLOAT_TEXT_MAX)
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (is_special(copy, out))
		return true;
	if (decimal_size(copy) != size)
		return false;
	*out = strtod(copy, NULL);
	return true;
}

void convert_strip(const char **text, size_t *size)
{
	while (*size && isspace((unsigned char)(*text)[*size - 1]))
		--*size;
	for (; *size && isspace((unsigned char)**text); --*size)
		++*text;
}

static const struct {
	size_t at;
	const char *bytes;
} image_heads[] = {
	{ 0, "\xff\xd8\xff" },
	{ 0, "\x89PNG\r\n\x1a\n" },
	{ 0, "GIF87a" },
	{ 0, "GIF89a" },
	{ 8, "WEBP" },
	{ 0, "BM" },
	{ 0, "II*" },
	{ 0, "MM" },
	{ 4, "ftypavif" },
	{ 4, "ftypheic" },
	{ 4, "ftypmif1" },
	{ 0, "\xff\x0a" },
	{ 4, "JXL \r\n\x87\n" },
};

bool convert_is_image(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(image_heads); i++) {
		size_t n = strlen(image_heads[i].bytes);

		if (range_ok(image_heads[i].at, n, size) &&
		    !memcmp(bytes + image_heads[i].at, image_heads[i].bytes, n))
			return true;
	}
	return false;
}

bool convert_is_json(const char *text, size_t size)
{
	json_t *v = json_loadb(text, size, JSON_DECODE_ANY, NULL);

	json_decref(v);
	return v;
}

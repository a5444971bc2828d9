/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/percent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char hex_digits[] = "0123456789ABCDEF";

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_digits, c & ~0x20) : NULL;

	if (c >= '0' && c <= '9')
		return c - '0';
	return at && at - hex_digits >= 10 ? (int)(at - hex_digits) : -1;
}

static bool is_escape(const char *p)
{
	return p[0] == '%' && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0;
}

int percent_encode(const char *text, size_t size, const char *keep,
		   bool escapes, char **out)
{
	char *p = malloc(3 * size + 1);
	unsigned char c;

	*out = p;
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		c = (unsigned char)text[i];
		if ((c && strchr(keep, c)) ||
		    (escapes && size - i > 2 && is_escape(text + i))) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = hex_digits[c >> 4];
		*p++ = hex_digits[c & 15];
	}
	*p = '\0';
	return 0;
}

bool percent_decode(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		if (!is_escape(p)) {
			*out++ = *p;
			continue;
		}
		*out = (char)(hex_value(p[1]) << 4 | hex_value(p[2]));
		if (!*out++)
			return false;
		p += 2;
	}
	*out = '\0';
	return true;
}

int url_encode(const char *text, bool slashes, char **out)
{
	const char *keep = slashes ? URL_UNRESERVED : URL_UNRESERVED "/";

	return percent_encode(text, strlen(text), keep, false, out);
}
